"""The interface of a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from speckit_memory.pipeline.ports import Column


class CrossEncoderModel(Protocol):
    """Reads a query and a text together and scores how well the text answers it (Nogueira and Cho 2019)."""

    def load(self) -> None:
        """Load the files of the model if necessary. May raise any exception."""

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        """Return the log-odds of each text being relevant, shape (n,). May raise any exception; callers handle it."""
