"""All terms of some indexes as one set, without making it before somebody goes through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from speckit_memory.memory.store.read_model.words.term_index import TermIndex


class Vocabulary(Set[str]):
    """The terms that the indexes hold; some that only removed entries held may be there."""

    __slots__ = ("__weakref__", "_indexes", "_words")

    def __init__(self, indexes: Sequence[TermIndex]) -> None:
        self._indexes = indexes
        self._words: frozenset[str] | None = None

    def __contains__(self, term: object) -> bool:
        """Whether an index has the term; asked term by term, this costs less than the whole set."""
        return isinstance(term, str) and any(index.knows(term) for index in self._indexes)

    def __iter__(self) -> Iterator[str]:
        """Each term once."""
        return iter(self._all())

    def __len__(self) -> int:
        """How many terms there are."""
        return len(self._all())

    def _all(self) -> frozenset[str]:
        if self._words is None:
            self._words = frozenset[str]().union(*(index.terms() for index in self._indexes))
        return self._words
