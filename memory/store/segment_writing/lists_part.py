"""Writes the inverted lists of vectors of a large store; `ListedMatrix.of_segment` reads them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from speckit_memory.config.workspace.options import VectorIndexing
from speckit_memory.memory.store.read_model.vectors import ivf_lists
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import LISTS
from speckit_memory.memory.store.segment_files.container import FileWriter


def write(writer: FileWriter, folder: Path, vector_index: VectorIndexing) -> None:
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
