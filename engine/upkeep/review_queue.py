"""Lists the findings of background work that people should review (feature M11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake import suspicions
from speckit_memory.memory.intake.suspicions import Suspicion
from speckit_memory.memory.lifecycle.staleness import Stale, stale
from speckit_memory.memory.store.file.connection import Database


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """Pairs that seem to contradict, the surest first, and memories unused for 90 days, the oldest first."""

    contradictions: tuple[Suspicion, ...]
    stale: tuple[Stale, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        pairs = [pair._asdict() | {"similarity": round(pair.similarity, 4)} for pair in self.contradictions]
        return {"contradictions": pairs, "stale": [memory._asdict() for memory in self.stale]}


def present_findings(database: Database, now: float) -> ReviewQueue:
    """The present findings, at `now` (epoch seconds)."""
    with database.snapshot_read() as connection:
        return ReviewQueue(tuple(suspicions.standing(connection)), tuple(stale(connection, now)))


def dismiss(database: Database, number: int, now: float) -> None:
    """Records that a pair does not contradict. Raises E080 for an unknown pair."""
    with database.write() as txn:
        if not suspicions.dismiss(txn, number, now):
            raise SpeckitError(
                "E080",
                f"there is no contradiction {number}",
                hint="Pairs that were dismissed or settled are not kept for review.",
                actions=("`speckit-memory links review` shows all there are",),
            )
