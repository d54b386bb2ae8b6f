"""Cross-encoders: models that read a query and a text together (feature R1). None is bundled; one can be configured."""

from speckit_memory.memory.models.crossencoders.choice import NoCrossEncoder, chosen
from speckit_memory.memory.models.crossencoders.guarded import CrossEncoderModel, GuardedCrossEncoder

__all__ = ["CrossEncoderModel", "GuardedCrossEncoder", "NoCrossEncoder", "chosen"]
