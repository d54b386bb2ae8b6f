"""Writes everything that queries read of one state of a store into a segment, from SQLite and in bounded memory.

Rows are read in blocks. Data to be sorted is sorted in runs that are spilled to a temporary file (`runs`); memory holds
a few numbers per memory and passage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

from speckit_memory.config.workspace.options import SHIPPED_INDEXING, VectorIndexing
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.segment_files.container import Writer
from speckit_memory.memory.store.segment_files.trusted_segment import FORMAT
from speckit_memory.memory.store.segment_writing import columns_part, lists_part, trigger_part, vector_part, word_part
from speckit_memory.memory.store.segment_writing.spill import Spill
from speckit_memory.memory.store.tables import changes


class SegmentInfo(NamedTuple):
    """A segment that has been written."""

    sequence: int
    """The number of the last change that it includes."""
    digest: str
    """Hexadecimal SHA-256 of its table, which holds a checksum of each array."""
    bytes: int
    """File size."""


_PARTS = (
    columns_part.write,
    trigger_part.write,
    word_part.write_fields,
    word_part.write_bodies,
    word_part.write_passages,
)
"""The writers of parts that are sorted, each with a spill file."""


def build(
    connection: apsw.Connection,
    path: Path,
    vector_index: VectorIndexing = SHIPPED_INDEXING,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> SegmentInfo:
    """Write the state that the connection sees, in one read transaction, to a file, atomically.

    Joins an open transaction. Temporary files are unnamed and in the same folder.

    Args:
        connection: A connection to the store.
        path: The file to create.
        vector_index: Decides by the number of vectors whether they get an index.
        pause: Called between blocks; an exception from it aborts the writing.
        progress: Receives the number of parts written and their total.

    Returns:
        The last change included, the digest of the file's table, and the size of the file.

    Raises:
        OSError: The file system refuses.
        apsw.Error: SQLite fails.
    """
    if connection.in_transaction:
        return _built(connection, path, vector_index, pause, progress)
    connection.execute("BEGIN")
    try:
        return _built(connection, path, vector_index, pause, progress)
    finally:
        connection.execute("ROLLBACK")


def _built(
    connection: apsw.Connection,
    path: Path,
    vector_index: VectorIndexing,
    pause: Callable[[], None],
    progress: Callable[[int, int], None],
) -> SegmentInfo:
    sequence = changes.latest(connection)
    token = value(connection, "SELECT token FROM changes WHERE seq = ?", (sequence,))
    with Writer(path, pause) as writer:
        # the sorted parts, the vectors, and the lists of vectors
        total = len(_PARTS) + 2
        for done, write in enumerate(_PARTS):
            progress(done, total)
            with Spill(path.parent, pause) as spill:  # one spill file per part, to use little disk space
                write(connection, writer, spill)
        progress(total - 2, total)
        model = vector_part.write(connection, writer)
        progress(total - 1, total)
        lists_part.write(writer, path.parent, vector_index, pause)
        digest, size = writer.finish({"format": FORMAT, "sequence": sequence, "token": token, "model": model})
    progress(total, total)
    return SegmentInfo(sequence, digest, size)
