"""Which memories a query may see (features C6, F7)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Ids

Mask = NDArray[np.bool_]


class Restriction(Protocol):
    """What a search of the store asks a scope; every `pipeline.ports.Scope` answers it."""

    @property
    def size(self) -> int:
        """How many memories are admitted."""

    @property
    def complete(self) -> bool:
        """True when every stored memory is admitted."""

    def admits(self, ids: Ids) -> Mask:
        """Which of these memories or chunks are admitted; unknown ids are not."""


class Placing(Protocol):
    """Finds the place of ids among the memories of one state of the store."""

    def places(self, ids: Ids) -> NDArray[np.integer]:
        """Number of the memory of each id, -1 where the id is unknown."""


class MemoryScope:
    """A set of memories of one state of the store, as a mask. Implements `pipeline.ports.Scope`."""

    __slots__ = ("_admitted", "_memories", "_size")

    def __init__(self, memories: Placing, admitted: Mask) -> None:
        """`admitted` has one element per memory, in the order of their numbers."""
        self._memories = memories
        # The place -1 of an unknown id reads this last element.
        self._admitted: Mask = np.append(admitted, False)
        self._size = int(np.count_nonzero(admitted))

    @property
    def size(self) -> int:
        """How many memories are admitted."""
        return self._size

    @property
    def complete(self) -> bool:
        """True when every stored memory is admitted."""
        return self._size == len(self._admitted) - 1

    def admits(self, ids: Ids) -> Mask:
        """Which of these ids (memories or chunks) are admitted; unknown ids are not."""
        admitted: Mask = self._admitted[self._memories.places(ids)]
        return admitted
