"""What is kept of conversations: what was sent to them, and what they attended to (features A2 and M4).

A session is a name that the caller chose; the empty name is no session. Nothing counts longer than 30 minutes. What it
attends to is written by `tables.working_memory`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.file.queries import integers, rows
from speckit_memory.memory.store.read_model.columns import Columns
from speckit_memory.memory.store.tables.working_memory import LIFE, Attended, attended
from speckit_memory.pipeline.ports import Column, Ids

MOST_SENT = 100
"""Entries that a session keeps of what it was sent, the latest ones."""


def mark_sent(txn: Transaction, session: str, memory_ids: Sequence[int], now: float) -> None:
    """Notes that these memories were sent to a session at `now` (epoch seconds), with the content they have.

    Ids that are not stored (any more) are passed over. Entries of any session that have outlived `LIFE` are forgotten.
    """
    txn.connection.execute("DELETE FROM session_sent WHERE sent_at <= ?", (now - LIFE,))
    txn.connection.execute(
        "INSERT INTO session_sent (session, content_hash, memory_id, sent_at) "
        "SELECT ?1, content_hash, id, ?2 FROM memories WHERE id IN (SELECT value FROM carray(?3)) ORDER BY id "
        "ON CONFLICT DO UPDATE SET memory_id = excluded.memory_id, sent_at = excluded.sent_at",
        (session, now, integers(memory_ids)),
    )
    txn.connection.execute(
        "DELETE FROM session_sent WHERE session = ?1 AND content_hash IN (SELECT content_hash FROM session_sent "
        "WHERE session = ?1 ORDER BY sent_at DESC, memory_id LIMIT -1 OFFSET ?2)",
        (session, MOST_SENT),
    )


def forget_sent(txn: Transaction, session: str) -> None:
    """Forgets what was sent to a session: whoever went on with it has lost that."""
    txn.connection.execute("DELETE FROM session_sent WHERE session = ?", (session,))


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
        with self._database.snapshot_read() as connection:
            found = attended(connection, session, now - LIFE, now)
        memories = self._columns.parents(ids)
        for one in found:
            attention[memories == one.memory] = one.attention
        return attention

    def attended(self, session: str, now: float) -> list[Attended]:
        """What a session attended to when it was last heard of before `now`, most of all first, however long ago: it
        is kept for a day after that."""
        if not session:
            return []
        with self._database.snapshot_read() as connection:
            return attended(connection, session, -np.inf, now)

    def sent(self, session: str, ids: Ids, now: float) -> NDArray[np.bool_]:
        """Which of these were sent in this session within `LIFE` before `now`, recognised by their content."""
        if not session:
            return np.zeros(len(ids), np.bool_)
        with self._database.snapshot_read() as connection:
            found = rows(
                connection,
                "SELECT content_hash FROM session_sent WHERE session = ?1 AND sent_at > ?2 AND sent_at <= ?3",
                (session, now - LIFE, now),
            )
        sent = {content for (content,) in found}
        contents = self._columns.label("content_hash", ids).tolist()
        return np.fromiter((content in sent for content in contents), np.bool_, len(ids))
