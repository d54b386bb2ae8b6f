"""Uses of edges: both ends were opened, cited or judged useful within one session (feature M11).

Being served does not count as use: the graph itself brings neighbours into results, and would reinforce them.
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
# An edge counts as used when one of its ends was used now, and both within `LIFE` by one session.
# Each half of the OR has an index, the unique one that begins with source_id and causal_edges_by_target; the second
# user of a session is found by the primary key (session, memory_id).
_TOGETHER = """
INSERT INTO edge_uses (edge_id, times, last_used)
SELECT e.id, 1, :now FROM causal_edges e
WHERE (e.source_id IN (SELECT value FROM carray(:used)) OR e.target_id IN (SELECT value FROM carray(:used)))
AND EXISTS (
    SELECT 1 FROM session_uses a JOIN session_uses b ON b.session = a.session
    WHERE a.memory_id = e.source_id AND b.memory_id = e.target_id
    AND a.used_at > :since AND a.used_at <= :now AND b.used_at > :since AND b.used_at <= :now
)
ON CONFLICT (edge_id) DO UPDATE SET times = edge_uses.times + 1, last_used = excluded.last_used
"""


def note_used(txn: Transaction, memories: Collection[int], now: float) -> None:
    """Records a use of memories at `now` (epoch seconds) by every session with them in its working memory, and a use
    of the edges to memories that the same session used within the last half hour."""
    if not memories:
        return
    facts = {"used": integers(sorted(memories)), "now": now, "since": now - LIFE}
    # in this order: the second statement reads the uses that the first stores
    txn.connection.execute(_USED, facts)
    txn.connection.execute(_TOGETHER, facts)


def forget_sessions(txn: Transaction, sessions: Sequence[str]) -> None:
    """Deletes the uses by these sessions; the use counts of edges stay."""
    gone = "DELETE FROM session_uses WHERE session IN (SELECT value FROM carray(?))"
    txn.connection.execute(gone, (texts(sessions),))
