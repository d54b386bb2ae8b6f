"""The values that a store and a pipeline hand to each other.

Neither side may import the other, so what both must name lies below both. Ids are memory ids and chunk ids, drawn from
one sequence, so that no number means two things.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Column = NDArray[np.float64]
Vectors = NDArray[np.float32]
Tokens = NDArray[np.unsignedinteger[Any]]
"""Token numbers of an embedding model, in the narrower of uint16 and uint32 that holds its vocabulary."""
Level = Literal["memory", "chunk"]
"""What a channel's hits are: whole memories, or single passages."""

Field = Literal["title", "triggers", "path", "body"]
FIELDS: tuple[Field, ...] = ("title", "triggers", "path", "body")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An expected absence (no embedder, no provider, deadline passed): a value, not an exception."""

    reason: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories a query may see. Empty means no restriction.

    `folder` also admits its sub-folders; `folders`, when not empty, admits any of these and their sub-folders on top of
    that condition (feature C13). `memories`, when not None, admits these alone, as a question of several concepts does
    (feature C1) or one with quoted words. Deprecated and expired memories are never admitted (features C6, F7).
    """

    folder: str = ""
    tier: str = ""
    context_type: str = ""
    folders: tuple[str, ...] = ()
    memories: tuple[int, ...] | None = None

    @property
    def of_the_tier(self) -> Filter:
        """What of this filter binds memories that every answer has to show: the tier alone (feature C6).

        Who asks for one tier wants to see that tier; who asks in a folder is still to see the rules of the house.
        """
        return Filter(tier=self.tier)


class FolderDescription(NamedTuple):
    """What a folder is about (feature C13): one sentence of at most 150 characters, and its analysed key words.

    A tuple, because the store keeps it and hands it out again and again: not even `object.__setattr__` changes it.
    """

    folder: str
    sentence: str
    keywords: frozenset[str]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text to show: a chunk, or a memory that is one chunk."""

    id: int
    memory: int
    text: str
    heading: str
    anchor: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class MemoryName:
    """What a memory is called. `declared` is the JSON object of the front matter that nothing interprets."""

    memory: int
    key: str
    title: str
    declared: str


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term occurs: row numbers of the index (ascending) and how often in each."""

    rows: NDArray[np.int32]
    frequency: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Walks over the causal graph from seeds: aligned columns, one row per reached (seed, memory) pair.

    `hops` is the shortest distance (1, 2, …), `product` the product of strength × relation weight along the best
    shortest walk.
    """

    seeds: Ids
    ids: Ids
    hops: NDArray[np.int32]
    product: Column
