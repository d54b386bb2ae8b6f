"""Saves that were stored and whose verdict was not reached: a kill came between, the store was busy, or the vectors
were to come (feature M6).

A new document is stored in one transaction with a note that its verdict is to come, which goes in the transaction that
does what follows from the verdict. The note is an entry of `scanned_memories` without a hash; the memory itself is what
a verdict is made of, so an edit in between counts.
"""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.memory.intake.prediction_error import MOST_PASSAGES, Verdict, act, judge
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.reading import comparing, reader

UNDER_WAY_SECONDS = 300.0
"""A save that is as young may still be under way."""
BATCH = 10
"""Saves that are judged before one transaction."""

_WAITING = (
    "FROM scanned_memories s JOIN memories m ON m.id = s.memory_id "
    "WHERE s.content_hash = '' AND m.embedding_status = 'done' AND abs(:now - s.scanned_at) >= :young"
)


class Judged(NamedTuple):
    """A memory that waited for its verdict, the hash of what was judged, and the verdict."""

    memory: int
    content_hash: str
    verdict: Verdict


def note(txn: Transaction, memory: int, now: float) -> None:
    """Notes that a memory, new at `now` (epoch seconds), waits for its verdict."""
    txn.connection.execute("INSERT OR REPLACE INTO scanned_memories VALUES (?, '', ?)", (memory, now))


def settle(txn: Transaction, memory: int) -> None:
    """Notes that a memory waits no longer."""
    txn.connection.execute("DELETE FROM scanned_memories WHERE memory_id = ? AND content_hash = ''", (memory,))


def waiting(connection: Connection, now: float) -> int:
    """How many memories wait for a verdict that nobody is about to reach."""
    number: int = value(connection, f"SELECT count(*) {_WAITING}", _facts(now))
    return number


def judged(connection: Connection, now: float) -> list[Judged]:
    """The verdicts on some of them."""
    found = rows(connection, f"SELECT m.id, m.content_hash {_WAITING} ORDER BY m.id LIMIT {BATCH}", _facts(now))
    return [
        Judged(memory, content_hash, judge(connection, reader.body(connection, memory), own, memory, now))
        for memory, content_hash in found
        for own in [comparing.vectors_of(connection, memory, MOST_PASSAGES)]
    ]


def write(txn: Transaction, now: float, found: list[Judged]) -> int:
    """Does what follows from the verdicts; returns how many. What was edited meanwhile waits on."""
    same = "SELECT 1 FROM memories WHERE id = ? AND content_hash = ?"
    standing = [each for each in found if value(txn.connection, same, (each.memory, each.content_hash))]
    for memory, _, verdict in standing:
        # what came later was compared with this one, when it was saved
        if verdict.id is not None and verdict.id < memory:
            act(txn, verdict, memory, now)
        settle(txn, memory)
    return len(standing)


def _facts(now: float) -> dict[str, float]:
    return {"now": now, "young": UNDER_WAY_SECONDS}
