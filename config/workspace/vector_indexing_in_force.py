"""The vector-index setting in force: environment, then the workspace's file, then the default."""

from __future__ import annotations

from speckit_memory.config.options.vector_indexing import ACCEPTED, LEAST_PASSAGES, VectorIndexing, understood
from speckit_memory.config.workspace.settings import VECTOR_INDEX_VARIABLE, Settings
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.errors import SpeckitError, refused


def vector_indexing_in_force(config: Settings) -> VectorIndexing:
    """The setting in force. Raises SpeckitError for an invalid value in the environment or the file."""
    in_file = load_workspace_config(config.root).vector_index
    written = config.environ.get(VECTOR_INDEX_VARIABLE, "").strip().lower()
    if not written:
        return in_file
    is_number = written.isascii() and written.isdigit() and len(written) <= 10
    if found := understood(int(written) if is_number else written):
        return found
    step = f"set {VECTOR_INDEX_VARIABLE} to a number such as {LEAST_PASSAGES}"
    raise SpeckitError.of([refused(VECTOR_INDEX_VARIABLE, written, ACCEPTED, step)])
