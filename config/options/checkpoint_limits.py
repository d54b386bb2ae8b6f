"""How many checkpoints of a store are kept, and for how long (docs/checkpoints.md)."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 1_000
"""Maximum for `keep` in any workspace: each checkpoint is a copy of the store."""


@dataclass(frozen=True, slots=True)
class CheckpointLimits:
    """`keep`: number of checkpoints kept, 1 to 1,000; a new one replaces the oldest. `days`: older ones are deleted;
    None for never."""

    keep: int = 10
    days: float | None = None


ACCEPTED_KEEP = f"a whole number from 1 to {MOST:,}"
ACCEPTED_DAYS = "a number of days above 0, or null"
