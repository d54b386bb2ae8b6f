"""Ports of the models that rerank hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports.values import Column, Ids, Unavailable


class RelevanceModel(Protocol):
    """A cross-encoder, if the user has configured one (feature R1)."""

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """Relevance [0, 1] of each text, in order; NaN for texts at the end that the deadline left no time for."""


class EncoderModel(Protocol):
    """A sentence encoder in addition to the model of the vector space, if the user has configured one (feature R1)."""

    @property
    def named(self) -> bool:
        """Whether the user has configured one."""

    def closeness(self, query: str, ids: Ids) -> tuple[Column, NDArray[np.bool_]] | Unavailable:
        """The cosine of a query and each of these memories and passages, and whether it is that of a whole memory.

        Cosines are NaN while there is no vector yet; vectors are computed in the background. A short memory is one
        text, for each of its passages; a long one is its passages, the first if only the memory is given.
        """
