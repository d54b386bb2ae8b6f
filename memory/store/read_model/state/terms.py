"""How an inverted index numbers its terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol


class Terms(Protocol):
    """Distinct terms with their numbers 0, 1, …, immutable."""

    def get(self, term: str) -> int | None:
        """The number of a term, None for one that is not there."""

    def name(self, number: int) -> str:
        """The term of a number."""

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms of these numbers."""

    def near(self, term: str, edits: int) -> Iterable[str]:
        """All terms that are at most so many edits away from another (`near_terms`), and some that are not."""

    def __iter__(self) -> Iterator[str]:
        """All terms by their numbers."""

    def __len__(self) -> int:
        """How many there are."""


class TermsInMemory:
    """Terms of a dictionary. Implements `Terms`."""

    __slots__ = ("_codes", "_names", "get")

    def __init__(self, codes: dict[str, int]) -> None:
        """`codes` numbers its terms in the order of iteration."""
        self._codes = codes
        self._names = list(codes)
        self.get = codes.get

    def name(self, number: int) -> str:
        """The term of a number."""
        return self._names[number]

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms of these numbers."""
        return list(map(self._names.__getitem__, numbers))

    def near(self, term: str, edits: int) -> Iterable[str]:  # noqa: ARG002 -- of a file alone some can be left out
        """All terms: they are strings already."""
        return self._codes

    def __iter__(self) -> Iterator[str]:
        """All terms by their numbers."""
        return iter(self._codes)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)
