"""Searches in the background for pairs of memories of which the newer seems to contradict the older (M11, N3).

Nothing is linked, merged or changed: a pair is shown until the user links the two, dismisses it, or edits one.
"""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.memory.intake.contradictions import Contradiction, contradiction
from speckit_memory.memory.intake.prediction_error import HIGH, MOST_PASSAGES, Nearest, alike
from speckit_memory.memory.intake.stale_verdicts import withdraw
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.reading import comparing, reader

BATCH = 25
"""Memories compared per transaction."""

# An empty hash marks a save with a pending verdict, which is judged first: see `unfinished_saves`.
_UNSCANNED = (
    "FROM memories m WHERE m.embedding_status = 'done' AND m.tier <> 'deprecated' "
    "AND (m.expires_at IS NULL OR m.expires_at > :now) AND NOT EXISTS "
    "(SELECT 1 FROM scanned_memories s WHERE s.memory_id = m.id AND s.content_hash IN (m.content_hash, ''))"
)
_STANDING = """
SELECT c.id, n.key, o.key, c.similarity, c.pattern, c.confidence, c.sentence, c.found_at
FROM suspected_contradictions c
JOIN memories n ON n.id = c.newer_id AND n.content_hash = c.newer_hash
JOIN memories o ON o.id = c.older_id AND o.content_hash = c.older_hash
WHERE c.dismissed_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM causal_edges e WHERE e.relation IN ('supersedes', 'contradicts') AND
    ((e.source_id = n.id AND e.target_id = o.id) OR (e.source_id = o.id AND e.target_id = n.id))
)
ORDER BY c.confidence DESC, c.similarity DESC, c.id
"""


class Suspicion(NamedTuple):
    """A pair that seems to contradict: its similarity (cosine), the matched pattern and its confidence, and the newer
    one's sentence; `found_at` is in epoch seconds."""

    id: int
    newer: str
    older: str
    similarity: float
    pattern: str
    confidence: float
    sentence: str
    found_at: float


class _Pair(NamedTuple):
    newer: tuple[int, str]
    older: tuple[int, str]
    similarity: float
    found: Contradiction


class ComparedPairs(NamedTuple):
    """The compared memories with their content hashes, and the contradicting pairs found for them."""

    memories: list[tuple[int, str]]
    pairs: list[_Pair]


def waiting(connection: Connection, now: float) -> int:
    """Return how many memories have not been compared since their text changed."""
    number: int = value(connection, f"SELECT count(*) {_UNSCANNED}", {"now": now})
    return number


def compare_batch(connection: Connection, now: float, nearest: Nearest) -> ComparedPairs:
    """Compare the next batch of memories, without a lock, because `nearest` takes long in a large store."""
    chosen = rows(connection, f"SELECT m.id, m.content_hash {_UNSCANNED} ORDER BY m.id LIMIT {BATCH}", {"now": now})
    pairs = {
        (pair.newer, pair.older): pair for memory, _ in chosen for pair in _pairs(connection, memory, now, nearest)
    }
    return ComparedPairs(chosen, list(pairs.values()))


def write(txn: Transaction, now: float, found: ComparedPairs) -> int:
    """Store the pairs of memories that are unchanged since; return how many memories were compared."""
    connection = txn.connection
    connection.executemany(
        "INSERT OR REPLACE INTO scanned_memories SELECT id, ?2, ?3 FROM memories WHERE id = ?1",
        [(memory, content, now) for memory, content in found.memories],
    )
    connection.executemany(
        "INSERT INTO suspected_contradictions (newer_id, newer_hash, older_id, older_hash, similarity, pattern, "
        "confidence, sentence, found_at) SELECT n.id, n.content_hash, o.id, o.content_hash, ?5, ?6, ?7, ?8, ?9 "
        "FROM memories n JOIN memories o ON o.id = ?3 AND o.content_hash = ?4 WHERE n.id = ?1 AND n.content_hash = ?2 "
        "ON CONFLICT (newer_id, older_id) DO UPDATE SET "
        "dismissed_at = iif(newer_hash = excluded.newer_hash AND older_hash = excluded.older_hash, dismissed_at, "
        "NULL), newer_hash = excluded.newer_hash, older_hash = excluded.older_hash, similarity = excluded.similarity, "
        "pattern = excluded.pattern, confidence = excluded.confidence, sentence = excluded.sentence, "
        "found_at = excluded.found_at",
        [(*pair.newer, *pair.older, pair.similarity, *pair.found, now) for pair in found.pairs],
    )
    # covers an edit whose run was killed before the gate's edges were reconsidered
    withdraw(txn, [memory for memory, _ in found.memories], now)
    return len(found.memories)


def standing(connection: Connection) -> list[Suspicion]:
    """Return the open pairs, highest confidence first."""
    return [Suspicion(*row) for row in rows(connection, _STANDING)]


def dismiss(txn: Transaction, number: int, now: float) -> bool:
    """Dismiss a pair until one of the two is edited; return False if there is no such pair."""
    changed = txn.connection.execute(
        "UPDATE suspected_contradictions SET dismissed_at = ? WHERE id = ? RETURNING id", (now, number)
    ).fetchall()
    return bool(changed)


def _pairs(connection: Connection, memory: int, now: float, nearest: Nearest) -> list[_Pair]:
    own = comparing.vectors_of(connection, memory, MOST_PASSAGES)
    if not len(own) or not own.any():
        return []
    found = []
    for other, similarity in alike(connection, own, memory, now, nearest):
        if similarity <= HIGH:
            continue
        newer, older = _by_age(connection, memory, other.id)
        seen = contradiction(reader.body(connection, newer[0]), reader.body(connection, older[0]))
        if seen is not None and seen.counts:
            found.append(_Pair(newer, older, similarity, seen))
    return found


def _by_age(connection: Connection, one: int, other: int) -> list[tuple[int, str]]:
    """Return two memories with their content hashes, the newer first: by last change, then by id."""
    wanted = (
        "SELECT id, content_hash FROM memories WHERE id IN (SELECT value FROM carray(?)) "
        "ORDER BY updated_at DESC, id DESC"
    )
    return rows(connection, wanted, (integers([one, other]),))
