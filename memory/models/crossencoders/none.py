"""The absent cross-encoder: the product works without one."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.config.workspace.settings import CROSS_ENCODER_VARIABLE
from speckit_memory.pipeline.ports import Column, Unavailable


class NoCrossEncoder:
    """Returns why no relevance is available. Implements `pipeline.ports.RelevanceModel`."""

    __slots__ = ("_reason",)

    def __init__(
        self,
        reason: str = f"no cross-encoder is configured; set {CROSS_ENCODER_VARIABLE} to a model folder or an ONNX file",
    ) -> None:
        self._reason = reason

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:  # noqa: ARG002
        """Return the reason why no relevance is available."""
        return Unavailable(self._reason)
