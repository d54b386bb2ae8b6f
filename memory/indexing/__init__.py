"""Turns Markdown files, texts and datasets into stored memories (features I1 to I9).

Names are imported on first use: a search needs the analyser, but none of the modules that read files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.indexing.indexer import Indexer
    from speckit_memory.memory.intake.index_report import IndexProgress, IndexReport, SavedLink, SaveResult
    from speckit_memory.memory.intake.source import Source
    from speckit_memory.memory.parsing.analysis import Analyser
    from speckit_memory.memory.parsing.markdown.chunks import ChunkSizes

__all__ = ["Analyser", "ChunkSizes", "IndexProgress", "IndexReport", "Indexer", "SaveResult", "SavedLink", "Source"]

_HOMES = {
    "Analyser": "speckit_memory.memory.parsing.analysis",
    "ChunkSizes": "speckit_memory.memory.parsing.markdown.chunks",
    "IndexReport": "speckit_memory.memory.intake.index_report",
    "Indexer": "speckit_memory.memory.indexing.indexer",
    "IndexProgress": "speckit_memory.memory.intake.index_report",
    "SaveResult": "speckit_memory.memory.intake.index_report",
    "SavedLink": "speckit_memory.memory.intake.index_report",
    "Source": "speckit_memory.memory.intake.source",
}
"""The module that defines each exported name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
