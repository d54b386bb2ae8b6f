"""The record of conversations: texts sent to them and the memories they attended to (features A2 and M4).

A session is a name chosen by the caller; the empty name means no session. Entries count for 30 minutes. Attention is
written by `tables.working_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.tables.sessions.working_memory import LIFE, AttendedMemory, working_memory_of
from speckit_memory.pipeline.ports import Column, Ids

MOST_SENT = 100
"""Entries kept per session of the texts sent to it, the latest ones."""


def digest(memory: int, text: str) -> str:
    """Identifies a text of a memory that was sent. The same words in another memory are another text: their receiver
    does not know that they occur here too."""
    return blake2b(f"{memory}\n{text}".encode(errors="surrogatepass"), digest_size=16).hexdigest()


def mark_sent(txn: Transaction, session: str, texts: Sequence[tuple[int, str]], now: float) -> None:
    """Record that texts of memories were sent to a session, and delete entries of any session older than `LIFE`.

    Args:
        txn: The write transaction.
        session: Name of the session.
        texts: (memory id, text) of each.
        now: The present time in epoch seconds.
    """
    # a range of the index session_sent_by_time
    txn.connection.execute("DELETE FROM session_sent WHERE sent_at <= ?", (now - LIFE,))
    txn.connection.executemany(
        "INSERT INTO session_sent (session, content_hash, memory_id, sent_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET sent_at = excluded.sent_at",
        [(session, digest(memory, text), memory, now) for memory, text in texts],
    )
    # LIMIT -1 OFFSET n: every row after the n latest
    txn.connection.execute(
        "DELETE FROM session_sent WHERE session = ?1 AND content_hash IN (SELECT content_hash FROM session_sent "
        "WHERE session = ?1 ORDER BY sent_at DESC, memory_id LIMIT -1 OFFSET ?2)",
        (session, MOST_SENT),
    )


def forget_sent(txn: Transaction, session: str) -> None:
    """Forget what was sent to a session: the reader's context no longer contains it."""
    txn.connection.execute("DELETE FROM session_sent WHERE session = ?", (session,))


Sent = tuple[int, str]
"""A memory id and the digest of one of its texts that was sent to a session."""


class SessionState(NamedTuple):
    """A session's attention and the texts sent to it, at one point in time."""

    attended: tuple[AttendedMemory, ...] = ()
    sent: tuple[Sent, ...] = ()


class SessionTable:
    """The sessions, seen from one state of the store. Implements `pipeline.ports.Sessions`.

    Sessions change with every answer, unlike the memories, and are therefore read on each call.
    """

    __slots__ = ("_columns", "_database")

    def __init__(self, database: Database, columns: Columns) -> None:
        self._database = database
        self._columns = columns

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        """Working-memory attention [0, 1] of the memory of each id; 0 for none or expired attention."""
        attention = np.zeros(len(ids))
        if not session:
            return attention
        memories = self._columns.parents(ids)
        for one in self._attended(session, now - LIFE, now):
            attention[memories == one.memory] = one.attention
        return attention

    def attended(self, session: str, now: float) -> Sequence[AttendedMemory]:
        """The attention of a session when it was last active before `now`, highest first, however long ago; it is
        kept for a day."""
        return self._attended(session, -np.inf, now) if session else []

    def texts_sent(self, session: str, memories: Ids, now: float) -> list[list[str]]:
        """For each memory, the digests of its texts sent to this session within `LIFE` before `now`."""
        if not session:
            return [[] for _ in memories]
        sent: dict[int, list[str]] = {}
        for memory, text in self._sent(session, now):
            sent.setdefault(memory, []).append(text)
        return [sent.get(memory, []) for memory in self._columns.parents(memories).tolist()]

    def state(self, session: str, now: float) -> SessionState:
        """The part of a session that a search at `now` may use."""
        return SessionState(tuple(self._attended(session, -np.inf, now)), tuple(self._sent(session, now)))

    def as_of(self, state: SessionState) -> SessionTable:
        """The same sessions, with every one in this state."""
        return _RecordedSessions(self._database, self._columns, state)

    def _attended(self, session: str, since: float, until: float) -> Sequence[AttendedMemory]:
        with self._database.snapshot_read() as connection:
            return working_memory_of(connection, session, since, until)

    def _sent(self, session: str, now: float) -> Sequence[Sent]:
        with self._database.snapshot_read() as connection:
            return rows(
                connection,
                "SELECT memory_id, content_hash FROM session_sent "
                "WHERE session = ?1 AND sent_at > ?2 AND sent_at <= ?3",
                (session, now - LIFE, now),
            )


class _RecordedSessions(SessionTable):
    """Sessions in the state recorded with a query."""

    __slots__ = ("_state",)

    def __init__(self, database: Database, columns: Columns, state: SessionState) -> None:
        super().__init__(database, columns)
        self._state = state

    def _attended(self, _session: str, since: float, until: float) -> Sequence[AttendedMemory]:
        return [one for one in self._state.attended if since < one.last_focused <= until]

    def _sent(self, _session: str, _now: float) -> Sequence[Sent]:
        return self._state.sent
