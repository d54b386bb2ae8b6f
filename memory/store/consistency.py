"""Whether a store agrees with itself: SQLite's own checks and the rules that no constraint can express."""

from __future__ import annotations

import apsw

from memory.store.queries import table_exists

_RULES = (
    ("memory {} has no full-text row", "SELECT id FROM memories EXCEPT SELECT rowid FROM memory_fts"),
    ("the full-text row {} belongs to no memory", "SELECT rowid FROM memory_fts EXCEPT SELECT id FROM memories"),
    ("memory {} has no texts", "SELECT id FROM memories EXCEPT SELECT memory_id FROM texts"),
    (
        "memory {} does not have the number of chunks it says",
        "SELECT m.id FROM memories m WHERE m.chunk_count <> "
        "(SELECT count(*) FROM chunks c WHERE c.memory_id = m.id AND c.ordinal < m.chunk_count)",
    ),
    (
        "chunk {} has the id of another memory",
        "SELECT c.id FROM chunks c JOIN memories m ON m.id = c.id WHERE c.memory_id <> m.id OR m.chunk_count <> 1",
    ),
    (
        "memory {} does not have the embedding status of its chunks",
        "SELECT m.id FROM memories m WHERE (m.embedding_status = 'pending') <> "
        "EXISTS (SELECT 1 FROM chunks c WHERE c.memory_id = m.id AND c.vector = 'pending')",
    ),
    (
        "the tokens of chunk {} belong to no vector",
        "SELECT chunk_id FROM chunk_tokens EXCEPT SELECT id FROM chunks WHERE vector <> 'pending'",
    ),
    (
        "id {} has not been drawn from the sequence",
        "SELECT id FROM (SELECT id FROM memories UNION ALL SELECT id FROM chunks) "
        "WHERE id >= (SELECT next FROM id_sequence)",
    ),
)
_VECTOR_RULES = (
    (
        "chunk {} should have a vector",
        "SELECT id FROM chunks WHERE vector = 'stored' EXCEPT SELECT rowid FROM chunk_vectors",
    ),
    (
        "the vector {} belongs to no chunk",
        "SELECT rowid FROM chunk_vectors EXCEPT SELECT id FROM chunks WHERE vector = 'stored'",
    ),
)
_NO_VECTOR_RULES = (("chunk {} should have a vector", "SELECT id FROM chunks WHERE vector <> 'pending'"),)


def inconsistencies(connection: apsw.Connection) -> list[str]:
    """What is wrong, one sentence each; at most ten rows are named per rule."""
    found = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    for table, rowid, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        found.append(f"row {rowid} of {table} points to a missing row of {parent}")
    has_vectors = table_exists(connection, "chunk_vectors")
    for sentence, query in (*_RULES, *(_VECTOR_RULES if has_vectors else _NO_VECTOR_RULES)):
        found += [sentence.format(row[0]) for row in connection.execute(f"{query} LIMIT 10")]
    return found
