"""Models that turn text into vectors (feature I6). Nothing is imported or read before the first text arrives."""

from memory.indexing.embedders.protocol import Embedder, TokenModel
from memory.indexing.embedders.static import StaticEmbedder

__all__ = ["Embedder", "StaticEmbedder", "TokenModel"]
