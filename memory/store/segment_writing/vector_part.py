"""Writes the vectors and tokens of passages; `VectorMatrix.of_segment` and `TokenTable.of_segment` read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from speckit_memory.config.workspace.options import VectorIndexing
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.read_model.vectors import ivf_lists
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import LISTS
from speckit_memory.memory.store.reading.loading import load_vectors_of_chunks
from speckit_memory.memory.store.segment_files.container import FileWriter, Writer
from speckit_memory.memory.store.segment_writing.spill import ROWS, blocks
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Ids, Vectors

_STORED = "SELECT id, memory_id FROM chunks WHERE vector = 'stored' ORDER BY id"
_TOKENS = "SELECT chunk_id, tokens FROM chunk_tokens ORDER BY chunk_id"


def write(connection: Connection, writer: Writer) -> str | None:
    """Write unit vectors with the chunk and memory of each row, and the distinct tokens of each chunk, concatenated.
    Returns the id of the model that made the vectors."""
    pairs = [np.array(block, np.int64) for block in blocks(connection, _STORED)]
    table = np.concatenate([np.empty((0, 2), np.int64), *pairs])
    chunks, parents = table[:, 0].copy(), table[:, 1].copy()
    size = vectors.dimensions(connection)
    writer.stream("vector.rows", np.float32, _rows(connection, chunks), (size,))
    # The same derived arrays as `VectorMatrix._take`, so that opening a segment computes nothing.
    # memories: (distinct,) ascending; slots: (rows,) index in it; by_memory: (rows,) row numbers by memory, then
    # chunk
    memories, slots = np.unique(parents, return_inverse=True)
    by_memory = np.lexsort((chunks, parents))
    writer.add("vector.chunks", chunks)
    writer.add("vector.parents", parents)
    writer.add("vector.memories", memories)
    writer.add("vector.slots", slots.astype(np.intp))
    writer.add("vector.by_memory", by_memory)
    writer.add("vector.ordered_parents", parents[by_memory])
    _write_tokens(connection, writer)
    return get_meta(connection, vectors.MODEL)


def _rows(connection: Connection, chunks: Ids) -> Iterator[Vectors]:
    for at in range(0, len(chunks), ROWS):
        yield load_vectors_of_chunks(connection, chunks[at : at + ROWS])[1]


def _write_tokens(connection: Connection, writer: Writer) -> None:
    # WIDTH: bytes of a stored token number, 2 or 4, little-endian
    kind = np.dtype(np.uint32 if get_meta(connection, token_sets.WIDTH) == "4" else np.uint16)
    ids, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    frequencies = np.empty(0, np.int64)

    def flat() -> Iterator[NDArray[np.unsignedinteger]]:
        nonlocal frequencies
        for block in blocks(connection, _TOKENS):
            ids.append(np.array([chunk for chunk, _ in block], np.int64))
            lengths.append(np.array([len(blob) // kind.itemsize for _, blob in block], np.int64))
            tokens = np.frombuffer(b"".join(blob for _, blob in block), kind.newbyteorder("<"))
            counts = np.bincount(tokens, minlength=len(frequencies))
            # The highest token number may grow from block to block.
            counts[: len(frequencies)] += frequencies
            frequencies = counts
            yield tokens

    writer.stream("token.flat", kind, flat())
    every = np.concatenate(lengths)
    writer.add("token.chunks", np.concatenate(ids))
    writer.add("token.lengths", every)
    writer.add("token.starts", np.cumsum(every) - every)
    writer.add("token.frequencies", frequencies)


def write_lists(writer: FileWriter, folder: Path, vector_index: VectorIndexing) -> None:
    """Write lists of the vectors already written, if the setting asks for them and the library is installed.

    Args:
        writer: Has already written `vector.rows`.
        folder: Folder for a temporary file.
        vector_index: Decides by the number of vectors.
    """
    if not vector_index.wanted(writer.count("vector.rows")) or not ivf_lists.is_faiss_installed():
        return
    with TemporaryFile(dir=folder) as file:
        ivf_lists.write(writer.written("vector.rows"), file)
        writer.add(LISTS, np.memmap(file, np.uint8, "r"))
