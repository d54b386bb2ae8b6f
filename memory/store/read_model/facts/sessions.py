"""What is kept of conversations: what was sent to them, and what they attended to (features A2 and M4).

A session is a name that the caller chose; the empty name is no session. Nothing counts longer than 30 minutes. What it
attends to is written by `tables.working_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.tables.sessions.working_memory import LIFE, Attended, attended
from speckit_memory.pipeline.ports import Column, Ids

MOST_SENT = 100
"""Entries that a session keeps of what it was sent, the latest ones."""


def digest(memory: int, text: str) -> str:
    """What stands for a text of a memory that was sent. The same words of another memory are another text: who has
    been sent those does not know that they stand here too."""
    return blake2b(f"{memory}\n{text}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def mark_sent(txn: Transaction, session: str, texts: Sequence[tuple[int, str]], now: float) -> None:
    """Notes that a session was sent these texts of memories, (id, text), at `now` (epoch seconds).

    Entries of any session that have outlived `LIFE` are forgotten.
    """
    txn.connection.execute("DELETE FROM session_sent WHERE sent_at <= ?", (now - LIFE,))
    txn.connection.executemany(
        "INSERT INTO session_sent (session, content_hash, memory_id, sent_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET sent_at = excluded.sent_at",
        [(session, digest(memory, text), memory, now) for memory, text in texts],
    )
    txn.connection.execute(
        "DELETE FROM session_sent WHERE session = ?1 AND content_hash IN (SELECT content_hash FROM session_sent "
        "WHERE session = ?1 ORDER BY sent_at DESC, memory_id LIMIT -1 OFFSET ?2)",
        (session, MOST_SENT),
    )


def forget_sent(txn: Transaction, session: str) -> None:
    """Forgets what was sent to a session: whoever went on with it has lost that."""
    txn.connection.execute("DELETE FROM session_sent WHERE session = ?", (session,))


Sent = tuple[int, str]
"""A memory and the digest of one of its texts that a session was sent."""


class SessionState(NamedTuple):
    """What a session attended to and what it was sent, as of one moment."""

    attended: tuple[Attended, ...] = ()
    sent: tuple[Sent, ...] = ()


class Sessions:
    """The sessions, seen from one state of the store. Implements `pipeline.ports.Sessions`.

    What they hold is read at the time of asking: it changes with every answer, and the memories do not.
    """

    __slots__ = ("_columns", "_database")

    def __init__(self, database: Database, columns: Columns) -> None:
        self._database = database
        self._columns = columns

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        """Working-memory attention [0, 1] of the memory of each id; 0 where it has none, or had it too long ago."""
        attention = np.zeros(len(ids))
        if not session:
            return attention
        memories = self._columns.parents(ids)
        for one in self._attended(session, now - LIFE, now):
            attention[memories == one.memory] = one.attention
        return attention

    def attended(self, session: str, now: float) -> Sequence[Attended]:
        """What a session attended to when it was last heard of before `now`, most of all first, however long ago: it
        is kept for a day after that."""
        return self._attended(session, -np.inf, now) if session else []

    def texts_sent(self, session: str, memories: Ids, now: float) -> list[list[str]]:
        """The digests of the texts of each memory that were sent in this session within `LIFE` before `now`."""
        if not session:
            return [[] for _ in memories]
        sent: dict[int, list[str]] = {}
        for memory, text in self._sent(session, now):
            sent.setdefault(memory, []).append(text)
        return [sent.get(memory, []) for memory in self._columns.parents(memories).tolist()]

    def state(self, session: str, now: float) -> SessionState:
        """What a search of this session at `now` may see of it."""
        return SessionState(tuple(self._attended(session, -np.inf, now)), tuple(self._sent(session, now)))

    def as_of(self, state: SessionState) -> Sessions:
        """The same where every session is in this state."""
        return _RecordedSessions(self._database, self._columns, state)

    def _attended(self, session: str, since: float, until: float) -> Sequence[Attended]:
        with self._database.snapshot_read() as connection:
            return attended(connection, session, since, until)

    def _sent(self, session: str, now: float) -> Sequence[Sent]:
        with self._database.snapshot_read() as connection:
            return rows(
                connection,
                "SELECT memory_id, content_hash FROM session_sent "
                "WHERE session = ?1 AND sent_at > ?2 AND sent_at <= ?3",
                (session, now - LIFE, now),
            )


class _RecordedSessions(Sessions):
    """Sessions as they were when a query was asked."""

    __slots__ = ("_state",)

    def __init__(self, database: Database, columns: Columns, state: SessionState) -> None:
        super().__init__(database, columns)
        self._state = state

    def _attended(self, _session: str, since: float, until: float) -> Sequence[Attended]:
        return [one for one in self._state.attended if since < one.last_focused <= until]

    def _sent(self, _session: str, _now: float) -> Sequence[Sent]:
        return self._state.sent
