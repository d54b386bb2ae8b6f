"""Which memories a query may see (features C6, F7)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Ids

Mask = NDArray[np.bool_]


class Restriction(Protocol):
    """What a search of the store needs of a scope; every `pipeline.ports.Scope` has it."""

    @property
    def size(self) -> int:
        """Number of admitted memories."""

    @property
    def complete(self) -> bool:
        """True when every stored memory is admitted."""

    def admits(self, ids: Ids) -> Mask:
        """Which of these memories or chunks are admitted; unknown ids are not."""


class RowLookup(Protocol):
    """Maps ids to places among the memories of one state of the store."""

    def places(self, ids: Ids) -> NDArray[np.integer]:
        """Place of the memory of each id, -1 for an unknown id."""


class MemoryScope:
    """A set of memories of one state of the store, as a mask. Implements `pipeline.ports.Scope`."""

    __slots__ = ("_admitted", "_memories", "_size")

    def __init__(self, memories: RowLookup, admitted: Mask) -> None:
        """`admitted` has one element per memory, in order of places."""
        self._memories = memories
        # Place -1, that of an unknown id, reads this last element.
        self._admitted: Mask = np.append(admitted, False)
        self._size = int(np.count_nonzero(admitted))

    @property
    def size(self) -> int:
        """Number of admitted memories."""
        return self._size

    @property
    def complete(self) -> bool:
        """True when every stored memory is admitted."""
        return self._size == len(self._admitted) - 1

    def admits(self, ids: Ids) -> Mask:
        """Which of these ids (memories or chunks) are admitted; unknown ids are not."""
        admitted: Mask = self._admitted[self._memories.places(ids)]
        return admitted
