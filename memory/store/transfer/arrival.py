"""What copied memories need in their new store: ids, edges to its other memories, and entries in its logs (feature
M14)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, table_exists, value
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import link_targets
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.writing import near_duplicates
from speckit_memory.memory.store.writing.links import resolve_links

ANALYSER = "analyser_version"
"""Key in `meta` of the version of the analyser: `indexing.versions.ANALYSER`."""
_OUTER_EDGES = """
CREATE TABLE IF NOT EXISTS outer_edges (
    source TEXT NOT NULL, target TEXT NOT NULL, relation TEXT NOT NULL, strength REAL NOT NULL,
    evidence TEXT NOT NULL, created_by TEXT NOT NULL, created_at REAL NOT NULL,
    said REAL, principal TEXT NOT NULL DEFAULT ''
) STRICT
"""
"""The table of a checkpoint of a folder with the edges that lead out of it, by the keys of both ends."""
# <> is an exclusive or: exactly one end is among the memories
_LEADING_OUT = """
SELECT s.key, t.key, e.relation, e.strength, e.evidence, e.created_by, e.created_at, e.said, e.principal
FROM causal_edges e JOIN memories s ON s.id = e.source_id JOIN memories t ON t.id = e.target_id
WHERE (s.id IN (SELECT value FROM carray(?1))) <> (t.id IN (SELECT value FROM carray(?1)))
"""
_MISSING_EDGE = """
INSERT OR IGNORE INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at, said,
    principal)
SELECT s.id, t.id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM memories s, memories t WHERE s.key = ?1 AND t.key = ?2
RETURNING source_id, target_id
"""


def other_words(source: Connection, connection: Connection) -> str:
    """The reason why the tokens of two files cannot be mixed; "" if they can."""
    theirs, ours = get_meta(source, ANALYSER), get_meta(connection, ANALYSER)
    if None not in (theirs, ours) and theirs != ours:
        return f"its words were split by '{theirs}', those of the store by '{ours}'"
    return ""


def assign_ids(
    source: Connection,
    connection: Connection,
    chosen: Collection[int],
    memories: dict[int, int],
    keep_ids: bool,
) -> dict[int, int]:
    """Assigns ids to the chosen memories that have none yet, and to the passages of all chosen ones.

    Args:
        source: The other file.
        connection: A connection to this store, inside a transaction.
        chosen: Ids in the source.
        memories: Ids here by id in the source; missing ones are added.
        keep_ids: Whether ids that are free here stay the same.

    Returns:
        Ids of passages here by id in the source.
    """
    # all ids in use here, of memories and passages alike: they share one sequence
    taken = {row for (row,) in rows(connection, "SELECT id FROM memories UNION SELECT id FROM chunks")}
    chunks: dict[int, int] = {}
    for row, numbers in rows(
        source,
        "SELECT m.id, (SELECT json_group_array(id ORDER BY ordinal) FROM chunks WHERE memory_id = m.id) "
        "FROM memories m WHERE m.id IN (SELECT value FROM carray(?)) ORDER BY m.id",
        (integers(list(chosen)),),
    ):
        own: list[int] = json.loads(numbers)
        if row not in memories:
            memories[row] = row if keep_ids and row not in taken else draw(connection, 1)[0]
        here = memories[row]
        if own == [row]:  # a single passage has its memory's id
            chunks[row] = here
        # all passages of a memory keep their ids or none does, so that ids stay in document order
        elif here == row and keep_ids and taken.isdisjoint(own):
            chunks.update(zip(own, own, strict=True))
        else:
            chunks.update(zip(own, draw(connection, len(own)), strict=True))
        taken |= {here, *(chunks[each] for each in own)}
    return chunks


def draw(connection: Connection, count: int) -> range:
    """Draws new ids, which were never used before. Inside a transaction."""
    following: int = value(connection, "UPDATE id_sequence SET next = next + ? RETURNING next", (count,))
    return range(following - count, following)


def keep_outer_edges(source: Connection, txn: Transaction, memories: Sequence[int]) -> None:
    """Stores in a checkpoint of `memories` the edges between these and others."""
    txn.connection.execute(_OUTER_EDGES)
    found = rows(source, _LEADING_OUT, (integers(memories),))
    txn.connection.executemany("INSERT INTO outer_edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", found)


def restore_outer_edges(source: Connection, txn: Transaction, memories: Sequence[int] = ()) -> set[int]:
    """Restores the missing edges that lead out of a checkpoint's folder, and those between `memories` and others in it,
    where both ends exist; returns the memories at their ends."""
    edges: Iterable[Any] = rows(source, _LEADING_OUT, (integers(memories),)) if memories else ()
    if table_exists(source, "outer_edges"):
        edges = [*rows(source, "SELECT * FROM outer_edges"), *edges]
    # checkpoints of earlier versions name no principal
    made = ((*edge, "")[:9] for edge in edges)
    return {end for edge in made for pair in rows(txn.connection, _MISSING_EDGE, edge) for end in pair}


def note(
    txn: Transaction, memories: Collection[int], folders: Collection[str], now: float, ends: Collection[int] = ()
) -> None:
    """Logs the arrival of memories for other processes, resolves links and marks folders for a new count of near
    duplicates.

    Args:
        txn: The transaction.
        memories: Ids of the memories that arrived.
        folders: Folders whose members changed.
        now: The time, in epoch seconds.
        ends: Ids of further memories whose edges changed.
    """
    coming = sorted(memories)
    changes.record(txn, coming, "put")
    changes.record(txn, sorted({*coming, *ends}), "edges")
    link_targets.note_memories(txn, coming)
    link_targets.note_keys(txn, [key for (key,) in rows(txn.connection, "SELECT key FROM memories")])
    resolve_links(txn, now)
    near_duplicates.mark_uncounted(txn, sorted(folders))
