"""What is remembered, made from Markdown files, texts and datasets (features I1 to I9).

Names are imported on first use: a search needs what reads queries, and nothing of what reads files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.indexing.analysis import Analyser
    from speckit_memory.memory.indexing.chunks import ChunkSizes
    from speckit_memory.memory.indexing.indexer import Indexer
    from speckit_memory.memory.indexing.source import Source
    from speckit_memory.memory.indexing.sources import IndexReport, Progress, Saved, SavedLink

__all__ = ["Analyser", "ChunkSizes", "IndexReport", "Indexer", "Progress", "Saved", "SavedLink", "Source"]

_HOMES = {
    "Analyser": "analysis",
    "ChunkSizes": "chunks",
    "IndexReport": "sources",
    "Indexer": "indexer",
    "Progress": "sources",
    "Saved": "sources",
    "SavedLink": "sources",
    "Source": "source",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
