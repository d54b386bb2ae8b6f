"""Models that turn text into vectors (feature I6). Nothing is imported or read before the first text arrives."""

from memory.indexing.embedders.choice import chosen
from memory.indexing.embedders.counting import counted_tokens
from memory.indexing.embedders.protocol import Embedder, PoolingModel, TokenModel
from memory.indexing.embedders.static import StaticEmbedder

__all__ = ["Embedder", "PoolingModel", "StaticEmbedder", "TokenModel", "chosen", "counted_tokens"]
