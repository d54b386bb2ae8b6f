"""The values that a store and a pipeline exchange.

Neither side may import the other, so shared types are defined below both. Ids are memory ids and chunk ids, drawn from
one sequence, so that every number is unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Column = NDArray[np.float64]
Vectors = NDArray[np.float32]
Tokens = NDArray[np.unsignedinteger[Any]]
"""Token numbers of an embedding model, in the narrower of uint16 and uint32 that holds its vocabulary."""
Level = Literal["memory", "chunk"]
"""The kind of a channel's hits: whole memories, or single passages."""

Field = Literal["title", "triggers", "path", "body"]
FIELDS: tuple[Field, ...] = ("title", "triggers", "path", "body")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An expected absence (no embedder, no provider, deadline passed): a value, not an exception."""

    reason: str


@dataclass(frozen=True, slots=True)
class Filter:
    """The memories that a query may see. Empty means no restriction.

    `folder` also admits its sub-folders; `folders`, if not empty, further restricts to any of these and their
    sub-folders (feature C13). `memories`, if not None, restricts to these ids, for example for a query with several
    concepts (feature C1) or quoted words. Deprecated and expired memories are never admitted (features C6, F7).
    """

    folder: str = ""
    tier: str = ""
    context_type: str = ""
    folders: tuple[str, ...] = ()
    memories: tuple[int, ...] | None = None

    @property
    def of_the_tier(self) -> Filter:
        """The part of the filter that applies to memories in every answer: only the tier (feature C6).

        A query for one tier must return only that tier; a query within a folder must still return constitutional
        memories.
        """
        return Filter(tier=self.tier)


class FolderDescription(NamedTuple):
    """The topic of a folder (feature C13): one sentence of at most 150 characters, and its analysed key words.

    A tuple, because the store shares one instance with many callers: not even `object.__setattr__` can change it.
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
    """The names of a memory. `declared` is the uninterpreted part of its front matter, as a JSON object."""

    memory: int
    key: str
    title: str
    declared: str


@dataclass(frozen=True, slots=True)
class Postings:
    """The occurrences of a term: row numbers of the index (ascending) and the frequency in each."""

    rows: NDArray[np.int32]
    frequency: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Paths in the causal graph from seeds: aligned columns, one row per reached (seed, memory) pair.

    `hops` is the shortest distance (1, 2, …), `product` the product of strength × relation weight along the best
    shortest path.
    """

    seeds: Ids
    ids: Ids
    hops: NDArray[np.int32]
    product: Column


T = TypeVar("T", bound=np.generic)


def immutable(array: NDArray[T]) -> NDArray[T]:
    """A plain copy whose memory is a `bytes` object: numpy refuses to make it, or any view of it, writable again.

    Merely clearing `writeable` is not enough: the holder of the array can set it again. For any dtype but object.
    """
    plain: NDArray[T] = np.array(array, order="C", copy=None, subok=False)
    return np.frombuffer(plain.tobytes(), dtype=plain.dtype).reshape(plain.shape)
