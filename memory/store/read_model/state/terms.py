"""The numbering of the terms of an inverted index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol


class Terms(Protocol):
    """Distinct terms with their numbers 0, 1, …, immutable."""

    def get(self, term: str) -> int | None:
        """The number of a term, None for an unknown one."""

    def name(self, number: int) -> str:
        """The term with this number."""

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms with these numbers."""

    def near(self, term: str, edits: int) -> Iterable[str]:
        """A superset of the terms within `edits` edits of a term (`near_terms`)."""

    def __iter__(self) -> Iterator[str]:
        """All terms in order of their numbers."""

    def __len__(self) -> int:
        """Number of terms."""


class TermsInMemory:
    """Terms in a dictionary. Implements `Terms`."""

    __slots__ = ("_codes", "_names", "get")

    def __init__(self, codes: dict[str, int]) -> None:
        """`codes` numbers its terms in iteration order."""
        self._codes = codes
        self._names = list(codes)
        self.get = codes.get

    def name(self, number: int) -> str:
        """The term with this number."""
        return self._names[number]

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms with these numbers."""
        return list(map(self._names.__getitem__, numbers))

    def near(self, term: str, edits: int) -> Iterable[str]:  # noqa: ARG002 -- of a file alone some can be left out
        """All terms: in memory there is nothing to save by leaving some out."""
        return self._codes

    def __iter__(self) -> Iterator[str]:
        """All terms in order of their numbers."""
        return iter(self._codes)

    def __len__(self) -> int:
        """Number of terms."""
        return len(self._names)
