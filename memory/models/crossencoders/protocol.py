"""What the product asks of a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from speckit_memory.pipeline.ports import Column


class CrossEncoder(Protocol):
    """Reads a query and a text together and judges how well the one answers the other (Nogueira and Cho 2019)."""

    def load(self) -> None:
        """Reads the files of the model, unless that is done. May raise anything."""

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        """The log-odds of each text being relevant, shape (n,). May raise anything: the caller takes care of that."""
