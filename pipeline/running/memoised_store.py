"""Parts of a store that cache answers during one search: filters, words, query vectors and tokens.

Several steps of a search make the same request. Answers are cached in objects that exist for one search only, so they
neither outlive the state of the store nor are shared by threads. Keys are copies of the arguments; results are handed
out as copies or are immutable.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import (
    Attributes,
    Bags,
    Column,
    Field,
    Filter,
    Ids,
    Level,
    Lexicon,
    Scope,
    TermIndex,
    TokenSpace,
    Unavailable,
    Vectors,
    VectorSpace,
)
from speckit_memory.pipeline.ports.immutable import own

T = TypeVar("T", bound=np.generic)


@final
class SearchAttributes:
    """Facts about the memories; each filter is evaluated once. Implements `Attributes`."""

    __slots__ = ("_of_store", "_scopes")

    def __init__(self, of_store: Attributes) -> None:
        self._of_store = of_store
        self._scopes: dict[tuple[Filter, float], Scope] = {}

    def parents(self, ids: Ids) -> Ids:
        """The memory of each id."""
        return self._of_store.parents(ids)

    def number(self, name: str, ids: Ids) -> Column:
        """A numeric fact about each id."""
        return self._of_store.number(name, ids)

    def label(self, name: str, ids: Ids) -> NDArray[np.object_]:
        """A textual fact about each id."""
        return self._of_store.label(name, ids)

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        """The memories just before and just after each."""
        return self._of_store.neighbours(ids)

    def scope(self, wanted: Filter, now: float) -> Scope:
        """The memories that a filter admits at the time `now`."""
        asked = _plain(wanted), float(now)
        found = self._scopes.get(asked)
        if found is None:
            found = self._scopes[asked] = self._of_store.scope(*asked)
        return found

    def of_tier(self, tier: str) -> Ids:
        """All memories of a tier."""
        return self._of_store.of_tier(tier)

    def oldest_first(self, scope: Scope) -> Ids:
        """All admitted memories by creation time."""
        return self._of_store.oldest_first(scope)

    def in_folder(self, folder: str) -> Ids:
        """All memories whose folder is exactly this one."""
        return self._of_store.in_folder(folder)

    @property
    def count(self) -> int:
        """The number of memories in the store."""
        return self._of_store.count


@final
class SearchLexicon:
    """The analysed words of the store; each text is analysed once. Implements `Lexicon`."""

    __slots__ = ("_of_store", "_tokens")

    def __init__(self, of_store: Lexicon) -> None:
        self._of_store = of_store
        self._tokens: dict[str, tuple[str, ...]] = {}

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query, in order."""
        text = own(text)
        found = self._tokens.get(text)
        if found is None:
            found = self._tokens[text] = self._of_store.analyse(text)
        return found

    def index(self, field: Field, level: Level = "memory") -> TermIndex:
        """The inverted index of a field."""
        return self._of_store.index(field, level)

    def bags(self, weights: tuple[float, float, float, float], k1: float, b: float, level: Level = "memory") -> Bags:
        """The bags of words with these field weights; see `pipeline.ports.Lexicon.bags`.

        Args:
            weights: Weight of each field in the order of `FIELDS`.
            k1: BM25 saturation, from 0.
            b: BM25 length normalisation, 0 to 1.
            level: memory or chunk.
        """
        return self._of_store.bags(weights, k1, b, level)

    def words(self) -> AbstractSet[str]:
        """All terms that memories hold."""
        return self._of_store.words()

    def near(self, term: str, edits: int) -> AbstractSet[str]:
        """The terms within `edits` edits of a term; may include others."""
        return self._of_store.near(term, edits)


@final
class SearchVectors:
    """The embeddings of all chunks; each query is embedded once. Implements `VectorSpace`."""

    __slots__ = ("_embedded", "_of_store")

    def __init__(self, of_store: VectorSpace) -> None:
        self._of_store = of_store
        self._embedded: dict[str, Vectors | Unavailable] = {}

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._of_store.dimensions

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors."""
        return self._of_store.static

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query."""
        text = own(text)
        found = self._embedded.get(text)
        if found is None:
            found = self._embedded[text] = self._of_store.embed(text)
        return _handed_out(found)

    def nearest(self, query: Vectors, limit: int, scope: Scope, level: Level) -> tuple[Ids, Column, Ids]:
        """The nearest memories or chunks, in total order; see `pipeline.ports.VectorSpace.nearest`.

        Args:
            query: Unit vector, shape (dimensions,).
            limit: Maximum number of results.
            scope: The memories that the filter admits.
            level: memory or chunk.
        """
        return self._of_store.nearest(query, limit, scope, level)

    def vectors(self, ids: Ids) -> Vectors:
        """The vectors of chunks, or the mean directions of memories."""
        return self._of_store.vectors(ids)


@final
class SearchTokens:
    """Token vectors; each query is tokenised once. Implements `TokenSpace`."""

    __slots__ = ("_cut", "_of_store")

    def __init__(self, of_store: TokenSpace) -> None:
        self._of_store = of_store
        self._cut: dict[str, Ids | Unavailable] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        return self._of_store.count(texts)

    def of_text(self, text: str) -> Ids | Unavailable:
        """Distinct token numbers of a query, ascending."""
        text = own(text)
        found = self._cut.get(text)
        if found is None:
            found = self._cut[text] = self._of_store.of_text(text)
        return _handed_out(found)

    def of_passages(self, ids: Ids) -> list[Ids]:
        """Distinct token numbers of each chunk."""
        return self._of_store.of_passages(ids)

    def vectors(self, tokens: Ids) -> Vectors:
        """Unit vectors of tokens, shape (n, dimensions)."""
        return self._of_store.vectors(tokens)

    def weights(self, tokens: Ids) -> Column:
        """Inverse document frequency of each token."""
        return self._of_store.weights(tokens)


def _handed_out(found: NDArray[T] | Unavailable) -> NDArray[T] | Unavailable:
    """A private copy for the caller."""
    return Unavailable(found.reason) if isinstance(found, Unavailable) else found.copy()


def _plain(wanted: Filter) -> Filter:
    """The same conditions as private values of plain types, suitable as a key."""
    return Filter(
        own(wanted.folder),
        own(wanted.tier),
        own(wanted.context_type),
        tuple(map(own, wanted.folders)),
        None if wanted.memories is None else tuple(map(int, wanted.memories)),
    )
