"""The counts of an attack (tests/attacks)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What one attack has tried so far.

    `inputs` are hostile values that were handed over: documents, names, arguments, answers of components. `faults` are
    things that were made to happen meanwhile: kills, swapped files, full disks, writes into foreign memory.
    """

    inputs: int = 0
    faults: int = 0

    def tried(self, inputs: int = 1) -> None:
        """Notes that so many inputs were tried and answered as promised."""
        self.inputs += inputs

    def survived(self, faults: int = 1) -> None:
        """Notes that so many faults were survived."""
        self.faults += faults
