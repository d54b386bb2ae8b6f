"""Models that turn text into vectors (feature I6). Model libraries and files are loaded with the first text."""

from speckit_memory.memory.models.embedders.choice import chosen, encoder_of, of_setting
from speckit_memory.memory.models.embedders.counting import counted_tokens
from speckit_memory.memory.models.embedders.protocol import Embedder, PoolingModel, TokenModel
from speckit_memory.memory.models.embedders.static import NAME, StaticEmbedder

__all__ = [
    "NAME",
    "Embedder",
    "PoolingModel",
    "StaticEmbedder",
    "TokenModel",
    "chosen",
    "counted_tokens",
    "encoder_of",
    "of_setting",
]
