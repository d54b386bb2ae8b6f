"""What is remembered, made from Markdown files, texts and datasets (features I1 to I9)."""

from memory.indexing.analysis import Analyser
from memory.indexing.chunks import ChunkSizes
from memory.indexing.indexer import Indexer
from memory.indexing.sources import IndexReport, Progress, Saved, Source

__all__ = ["Analyser", "ChunkSizes", "IndexReport", "Indexer", "Progress", "Saved", "Source"]
