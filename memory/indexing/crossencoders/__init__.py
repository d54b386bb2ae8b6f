"""Models that read a query and a text together (feature R1). None is bundled; the user may configure one."""

from memory.indexing.crossencoders.choice import chosen
from memory.indexing.crossencoders.guarded import GuardedCrossEncoder
from memory.indexing.crossencoders.none import NoCrossEncoder
from memory.indexing.crossencoders.protocol import CrossEncoder

__all__ = ["CrossEncoder", "GuardedCrossEncoder", "NoCrossEncoder", "chosen"]
