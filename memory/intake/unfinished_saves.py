"""Completes saves that were stored without a verdict, because the process was killed, the store was busy or vectors
were missing (feature M6).

A new document is stored in one transaction with a note that its verdict is pending; the transaction that acts on the
verdict removes the note. The note is a row of `scanned_memories` with an empty hash. The verdict is computed from the
stored memory, so an edit in between is taken into account.
"""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.memory.intake.prediction_error import MOST_PASSAGES, Nearest, Verdict, act, judge
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.reading import comparing, reader

UNDER_WAY_SECONDS = 300.0
"""Age below which a save may still be in progress."""
BATCH = 10
"""Saves judged per transaction."""

_WAITING = (
    "FROM scanned_memories s JOIN memories m ON m.id = s.memory_id "
    # abs(): a clock that was set back must not block a verdict for ever.
    "WHERE s.content_hash = '' AND m.embedding_status = 'done' AND abs(:now - s.scanned_at) >= :young"
)


class PendingVerdict(NamedTuple):
    """A memory that had no verdict, the content hash that was judged, and the verdict."""

    memory: int
    content_hash: str
    verdict: Verdict


def note(txn: Transaction, memory: int, now: float) -> None:
    """Note that the verdict on a memory, created at `now` (epoch seconds), is pending."""
    txn.connection.execute("INSERT OR REPLACE INTO scanned_memories VALUES (?, '', ?)", (memory, now))


def settle(txn: Transaction, memory: int) -> None:
    """Remove the note that the verdict on a memory is pending."""
    txn.connection.execute("DELETE FROM scanned_memories WHERE memory_id = ? AND content_hash = ''", (memory,))


def waiting(connection: Connection, now: float) -> int:
    """Return how many memories have a pending verdict and no save in progress."""
    number: int = value(connection, f"SELECT count(*) {_WAITING}", _facts(now))
    return number


def judge_pending(connection: Connection, now: float, nearest: Nearest) -> list[PendingVerdict]:
    """Return the verdicts on the next `BATCH` of them."""
    found = rows(connection, f"SELECT m.id, m.content_hash {_WAITING} ORDER BY m.id LIMIT {BATCH}", _facts(now))
    return [
        PendingVerdict(
            memory, content_hash, judge(connection, reader.body(connection, memory), own, memory, now, nearest)
        )
        for memory, content_hash in found
        for own in [comparing.vectors_of(connection, memory, MOST_PASSAGES)]
    ]


def write(txn: Transaction, now: float, found: list[PendingVerdict]) -> int:
    """Act on the verdicts; return how many. The verdict on a memory edited since stays pending."""
    same = "SELECT 1 FROM memories WHERE id = ? AND content_hash = ?"
    standing = [each for each in found if value(txn.connection, same, (each.memory, each.content_hash))]
    for memory, _, verdict in standing:
        # A later memory was compared with this one when it was saved.
        if verdict.id is not None and verdict.id < memory:
            act(txn, verdict, memory, now)
        settle(txn, memory)
    return len(standing)


def _facts(now: float) -> dict[str, float]:
    return {"now": now, "young": UNDER_WAY_SECONDS}
