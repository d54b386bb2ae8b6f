"""What is remembered, made from Markdown files, texts and datasets (features I1 to I9)."""

from speckit_memory.memory.indexing.analysis import Analyser
from speckit_memory.memory.indexing.chunks import ChunkSizes
from speckit_memory.memory.indexing.indexer import Indexer
from speckit_memory.memory.indexing.sources import IndexReport, Progress, Saved, Source

__all__ = ["Analyser", "ChunkSizes", "IndexReport", "Indexer", "Progress", "Saved", "Source"]
