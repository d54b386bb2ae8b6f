"""Writing all that queries read of one state of a store into a segment, from SQLite and in bounded memory.

Rows are read in blocks. What must be sorted is sorted in runs that wait in a temporary file (`runs`); in memory are a
few numbers per memory and passage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

from speckit_memory.config.options.vector_indexing import SHIPPED, VectorIndexing
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.segment_files.container import Writer
from speckit_memory.memory.store.segment_files.trusted_segment import FORMAT
from speckit_memory.memory.store.segment_writing import columns_part, lists_part, trigger_part, vector_part, word_part
from speckit_memory.memory.store.segment_writing.spill import Spill
from speckit_memory.memory.store.tables import changes


class Built(NamedTuple):
    """A segment that was written."""

    sequence: int
    """The last change that it includes."""
    digest: str
    """SHA-256 of its table, which holds a checksum of each array, in hexadecimal digits."""
    bytes: int
    """The size of its file."""


_PARTS = (
    columns_part.write,
    trigger_part.write,
    word_part.write_fields,
    word_part.write_bodies,
    word_part.write_passages,
)
"""What writes what must be sorted."""


def build(
    connection: apsw.Connection,
    path: Path,
    vector_index: VectorIndexing = SHIPPED,
    pause: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Built:
    """Writes the state that the connection sees, in one read of it, to a file that stands there whole or not at all.

    `vector_index` tells whether there are so many vectors that they get an index. `pause` is called between blocks of
    everything; what it raises ends the building. `progress` is told how many parts of how many are written. Joins an
    open transaction. Temporary files lie in the same folder, and have no names. Raises OSError as the file system does,
    and what SQLite raises.
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
) -> Built:
    sequence = changes.latest(connection)
    token = value(connection, "SELECT token FROM changes WHERE seq = ?", (sequence,))
    with Writer(path, pause) as writer:
        total = len(_PARTS) + 2
        for done, write in enumerate(_PARTS):
            progress(done, total)
            with Spill(path.parent, pause) as spill:  # of one part after the other, so that the disk holds little
                write(connection, writer, spill)
        progress(total - 2, total)
        model = vector_part.write(connection, writer)
        progress(total - 1, total)
        lists_part.write(writer, path.parent, vector_index, pause)
        digest, size = writer.finish({"format": FORMAT, "sequence": sequence, "token": token, "model": model})
    progress(total, total)
    return Built(sequence, digest, size)
