"""All terms of some indexes as one set that is built only when it is iterated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex


class Vocabulary(Set[str]):
    """The terms of some indexes, perhaps with some that only removed entries contained."""

    __slots__ = ("__weakref__", "_indexes", "_words")

    def __init__(self, indexes: Sequence[PostingsIndex]) -> None:
        self._indexes = indexes
        self._words: frozenset[str] | None = None

    def __contains__(self, term: object) -> bool:
        """Whether an index has the term; for a few terms this is cheaper than building the set."""
        return isinstance(term, str) and any(index.knows(term) for index in self._indexes)

    def __iter__(self) -> Iterator[str]:
        """Each distinct term once."""
        return iter(self._all())

    def __len__(self) -> int:
        """Number of distinct terms."""
        return len(self._all())

    def _all(self) -> frozenset[str]:
        if self._words is None:
            self._words = frozenset[str]().union(*(index.terms() for index in self._indexes))
        return self._words
