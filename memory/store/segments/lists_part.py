"""The lists of like rows of a large store, as `ListedMatrix.of_segment` reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from speckit_memory.config.vector_indexing import VectorIndexing
from speckit_memory.memory.store.read_model import like_rows
from speckit_memory.memory.store.read_model.listed_matrix import LISTS
from speckit_memory.memory.store.segments.container import Writer


def write(writer: Writer, folder: Path, vector_index: VectorIndexing, pause: Callable[[], None]) -> None:
    """Writes lists of the vectors that were written before, if they are wanted and the library is there.

    The temporary file lies in the folder; `pause` is called between blocks.
    """
    if not vector_index.wanted(writer.count("vector.rows")) or not like_rows.installed():
        return
    with TemporaryFile(dir=folder) as file:
        like_rows.write(writer.written("vector.rows"), file, pause)
        writer.add(LISTS, np.memmap(file, np.uint8, "r"))
