"""What became of one thing that was tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scenario, or one request, over one transport: it held unless there are `problems`."""

    client: str
    transport: str
    name: str
    checks: int = 1
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """How it is told: one line, and one more for each thing that is wrong, or recommended."""
        state = "BROKEN" if self.problems else "held"
        told = [f"{self.client:<26} {self.transport:<6} {self.name:<42} {self.checks:>4} {state}"]
        told += [f"    {problem}" for problem in self.problems]
        return told + [f"    (recommended) {warning}" for warning in self.warnings]
