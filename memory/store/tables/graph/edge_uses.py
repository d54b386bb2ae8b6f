"""Which edges were of use: those with both ends opened, cited or judged useful within one session (feature M11).

That something was served says nothing: the graph brings neighbours together, and would strengthen what it shows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, texts
from speckit_memory.memory.store.tables.sessions.working_memory import LIFE

_USED = """
INSERT OR REPLACE INTO session_uses (session, memory_id, used_at)
SELECT session, memory_id, :now FROM working_memory
WHERE memory_id IN (SELECT value FROM carray(:used)) AND last_focused > :since AND last_focused <= :now
"""
_TOGETHER = """
INSERT INTO edge_uses (edge_id, times, last_used)
SELECT e.id, 1, :now FROM causal_edges e
WHERE (e.source_id IN (SELECT value FROM carray(:used)) OR e.target_id IN (SELECT value FROM carray(:used)))
AND EXISTS (
    SELECT 1 FROM session_uses a JOIN session_uses b ON b.session = a.session
    WHERE a.memory_id = e.source_id AND b.memory_id = e.target_id
    AND a.used_at > :since AND a.used_at <= :now AND b.used_at > :since AND b.used_at <= :now
)
ON CONFLICT (edge_id) DO UPDATE SET times = times + 1, last_used = excluded.last_used
"""


def note_used(txn: Transaction, memories: Collection[int], now: float) -> None:
    """Notes that memories were of real use at `now` (epoch seconds) to every session that attends to them, and with
    them the edges to what the same session used within half an hour."""
    if not memories:
        return
    facts = {"used": integers(sorted(memories)), "now": now, "since": now - LIFE}
    txn.connection.execute(_USED, facts)
    txn.connection.execute(_TOGETHER, facts)


def forget_sessions(txn: Transaction, sessions: Sequence[str]) -> None:
    """Forgets what these sessions used; what edges gained by it stays."""
    gone = "DELETE FROM session_uses WHERE session IN (SELECT value FROM carray(?))"
    txn.connection.execute(gone, (texts(sessions),))
