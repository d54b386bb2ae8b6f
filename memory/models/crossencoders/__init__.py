"""Cross-encoders: models that read a query and a text together (feature R1). None is bundled; one can be configured."""

from speckit_memory.memory.models.crossencoders.choice import chosen
from speckit_memory.memory.models.crossencoders.guarded import GuardedCrossEncoder
from speckit_memory.memory.models.crossencoders.none import NoCrossEncoder
from speckit_memory.memory.models.crossencoders.protocol import CrossEncoderModel

__all__ = ["CrossEncoderModel", "GuardedCrossEncoder", "NoCrossEncoder", "chosen"]
