"""Writes everything that queries read of one state of a store into a segment, from SQLite and in bounded memory.

Rows are read in blocks. Data to be sorted is sorted in runs that are spilled to a temporary file (`runs`); memory holds
a few numbers per memory and passage, and the segment itself where no file can be written.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from speckit_memory.config.workspace.options import SHIPPED_INDEXING, VectorIndexing
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.segment_files.container import Container, FileWriter, Writer
from speckit_memory.memory.store.segment_files.segment_store import FORMAT, TrustedSegment, last_change
from speckit_memory.memory.store.segment_writing import columns_part, vector_part, word_part
from speckit_memory.memory.store.segment_writing.spill import Spill

OnParts = Callable[[int, int], None]


_PARTS = (
    columns_part.write,
    columns_part.write_triggers,
    word_part.write_fields,
    word_part.write_bodies,
    word_part.write_passages,
)
"""The writers of parts that are sorted, each with a spill file."""
_TOTAL = len(_PARTS) + 2
"""The sorted parts, the vectors, and the lists of vectors."""


def build(
    connection: Connection,
    path: Path,
    vector_index: VectorIndexing = SHIPPED_INDEXING,
    progress: OnParts = lambda _done, _total: None,
) -> TrustedSegment:
    """Write the state that the connection's open transaction sees to a file, atomically.

    Temporary files are unnamed and in the same folder.

    Args:
        connection: A connection to the store.
        path: The file to create.
        vector_index: Decides by the number of vectors whether they get an index.
        progress: Receives the number of parts written and their total.

    Raises:
        OSError: The file system refuses.
        DriverError: SQLite fails.
    """
    from tempfile import TemporaryFile

    with FileWriter(path) as writer:
        about = _write(connection, writer, lambda: TemporaryFile(dir=path.parent), progress)  # noqa: SIM115
        progress(_TOTAL - 1, _TOTAL)
        vector_part.write_lists(writer, path.parent, vector_index)
        digest, size = writer.finish(about)
    progress(_TOTAL, _TOTAL)
    return TrustedSegment(path.name, digest, size, about["sequence"], about["token"])


def build_in_memory(connection: Connection) -> Container:
    """The segment of the state that the connection's open transaction sees, in anonymous memory.

    It has no index of vectors.
    """
    content = BytesIO()
    writer = Writer(content)
    writer.finish(_write(connection, writer, BytesIO))
    return Container(content.getbuffer().toreadonly())


def _write(
    connection: Connection,
    writer: Writer,
    new_file: Callable[[], BinaryIO],
    progress: OnParts = lambda _done, _total: None,
) -> dict[str, Any]:
    """Write all parts but the lists of vectors; `new_file` opens a temporary file. Returns what the table says of the
    source."""
    sequence, token = last_change(connection)
    for done, write in enumerate(_PARTS):
        progress(done, _TOTAL)
        with Spill(new_file()) as spill:  # one spill file per part, to use little disk space
            write(connection, writer, spill)
    progress(_TOTAL - 2, _TOTAL)
    model = vector_part.write(connection, writer)
    return {"format": FORMAT, "sequence": sequence, "token": token, "model": model}
