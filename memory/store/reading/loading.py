"""Bulk reads for building an in-memory model: one SELECT each, ordered by id.

`ids` restricts each read to these memories; None loads all. The iterators read while they are consumed: consume them
inside one `Database.snapshot_read`, so that all rows come from one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.file.schema.facts import ATTRIBUTES
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Ids, Vectors

MEMORIES_AT_ONCE = 100
"""Memories whose tokens are read at a time."""


def load_attributes(connection: Connection, ids: Sequence[int] | Ids | None = None) -> list[tuple[Any, ...]]:
    """One tuple per memory with the values of `facts.ATTRIBUTES`, by memory id."""
    return list(_select(connection, f"SELECT {', '.join(ATTRIBUTES)} FROM memories", "id", ids, "id"))


def load_chunks(connection: Connection, ids: Sequence[int] | Ids | None = None) -> Iterator[tuple[int, int, int, str]]:
    """(chunk id, memory id, ordinal, tokens joined by blanks), by memory and ordinal.

    The tokens of a memory's body are the tokens of its chunks in this order.
    """
    # In this order a covering index serves the query of the chunks, and their texts stay unread.
    chunks = _select(connection, "SELECT id, memory_id, ordinal FROM chunks", "memory_id", ids, "memory_id, ordinal")
    for memory, of_memory, tokens in with_tokens(connection, groupby(chunks, itemgetter(1))):
        for chunk, _, ordinal in of_memory:
            yield chunk, memory, ordinal, tokens[ordinal] if ordinal < len(tokens) else ""


def with_tokens(
    connection: Connection, groups: Iterable[tuple[int, Iterable[tuple[Any, ...]]]]
) -> Iterator[tuple[int, list[tuple[Any, ...]], list[str]]]:
    """Memories and rows about each, with the tokens of its passages, which are read for some memories at a time."""
    taken = ((memory, list(of_memory)) for memory, of_memory in groups)
    wanted = "SELECT memory_id, tokens FROM texts WHERE memory_id IN (SELECT value FROM carray(?))"
    while some := list(islice(taken, MEMORIES_AT_ONCE)):
        packed = dict(rows(connection, wanted, (integers([memory for memory, _ in some]),)))
        for memory, of_memory in some:
            yield memory, of_memory, unpack_tokens(packed.get(memory, b""))


def tokens_of(connection: Connection, memory: int) -> list[str]:
    """The tokens of each passage of a memory, joined by blanks; empty for an unknown one."""
    return unpack_tokens(value(connection, "SELECT tokens FROM texts WHERE memory_id = ?", (memory,)) or b"")


def load_chunk_parents(connection: Connection, ids: Sequence[int] | Ids | None = None) -> tuple[Ids, Ids]:
    """Chunk ids ascending and the memory of each, without their texts."""
    # In this order a covering index serves the query, and the long rows of the table stay unread.
    found = list(_select(connection, "SELECT id, memory_id FROM chunks", "memory_id", ids, "memory_id, ordinal"))
    # the reshape keeps two columns where there is no row
    pairs = np.array(found, np.int64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0])]
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def load_fields(connection: Connection, ids: Sequence[int] | Ids | None = None) -> Iterator[tuple[int, str, str, str]]:
    """(memory id, title, trigger and path tokens, each joined by blanks), by memory id."""
    return _select(
        connection,
        "SELECT memory_id, title_tokens, trigger_tokens, path_tokens FROM texts",
        "memory_id",
        ids,
        "memory_id",
    )


def load_triggers(
    connection: Connection, ids: Sequence[int] | Ids | None = None
) -> Iterator[tuple[int, str, str, float, float | None]]:
    """(memory id, normalised phrase, source, weight, expires_at), by memory, authored phrases first."""
    return _select(
        connection,
        "SELECT memory_id, normalised, source, weight, expires_at FROM triggers",
        "memory_id",
        ids,
        "memory_id, source, normalised",
    )


def load_vectors(connection: Connection, ids: Sequence[int] | Ids | None = None) -> tuple[Ids, Vectors]:
    """Ids of the chunks that have a vector, ascending, and their unit vectors: shapes (n,) and (n, dimensions)."""
    size = vectors.dimensions(connection)
    if not size:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    if ids is None:
        found = rows(connection, "SELECT rowid, embedding FROM chunk_vectors ORDER BY rowid")
    else:
        found = rows(
            connection,
            "SELECT c.id, v.embedding FROM chunks c JOIN chunk_vectors v ON v.rowid = c.id "
            "WHERE c.vector = 'stored' AND c.memory_id IN (SELECT value FROM carray(?)) ORDER BY c.id",
            (integers(ids),),
        )
    return _as_matrix(found, size)


def load_vectors_of_chunks(connection: Connection, chunks: Ids) -> tuple[Ids, Vectors]:
    """As `load_vectors`, for these chunks."""
    size = vectors.dimensions(connection)
    if not size:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    # CROSS JOIN fixes the order: each vector is looked up by its id; otherwise sqlite-vec would read all of them.
    found = rows(
        connection,
        "SELECT v.rowid, v.embedding FROM carray(?) AS wanted CROSS JOIN chunk_vectors AS v ON v.rowid = wanted.value",
        (integers(distinct(chunks)),),
    )
    return _as_matrix(sorted(found), size)  # another engine may join them in any order


def _as_matrix(found: Sequence[tuple[int, bytes]], size: int) -> tuple[Ids, Vectors]:
    # matrix: (n, size) float32; joining into a bytearray makes it writable without another copy
    matrix = np.frombuffer(bytearray().join(row[1] for row in found), np.float32).reshape(len(found), size)
    return np.array([row[0] for row in found], np.int64), matrix


def _select(
    connection: Connection, select: str, owner: str, ids: Sequence[int] | Ids | None, order: str
) -> Iterator[tuple[Any, ...]]:
    if ids is None:
        return connection.execute(f"{select} ORDER BY {order}")
    return connection.execute(
        f"{select} WHERE {owner} IN (SELECT value FROM carray(?)) ORDER BY {order}", (integers(ids),)
    )
