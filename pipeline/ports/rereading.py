"""What is asked of models that look a second time at what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports.values import Column, Ids, Unavailable


class RelevanceModel(Protocol):
    """A cross-encoder, when the user has configured one (feature R1)."""

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        """Relevance [0, 1] of each text, in order; NaN for the tail that the deadline left no time for."""


class EncoderModel(Protocol):
    """A sentence encoder besides the model of the vector space, when the user has named one (feature R1)."""

    @property
    def named(self) -> bool:
        """Whether the user has named one."""

    def closeness(self, query: str, ids: Ids) -> tuple[Column, NDArray[np.bool_]] | Unavailable:
        """The cosine of a query and each of these memories and passages, NaN where there is no vector yet, and whether
        it is that of a whole memory; both in order.

        A short memory is one text, whichever passage of it is asked for; a long one is its passages, the first where
        none is named. Vectors are made in the background.
        """
