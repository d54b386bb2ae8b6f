"""How many checkpoints of a store are kept, and for how long (docs/checkpoints.md)."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 1_000
"""More are not kept, whatever a workspace says: each is a copy of the store."""


@dataclass(frozen=True, slots=True)
class CheckpointLimits:
    """`keep`: so many of a store, 1 to 1,000; the oldest goes for a new one. `days`: older ones go too; None for
    never."""

    keep: int = 10
    days: float | None = None


ACCEPTED_KEEP = f"a whole number from 1 to {MOST:,}"
ACCEPTED_DAYS = "a number of days above 0, or null"
