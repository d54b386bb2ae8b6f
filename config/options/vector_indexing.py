"""The number of passages from which an approximate index finds the nearest vectors (docs/large-stores.md)."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_PASSAGES = 200_000
"""Comparing this many vectors takes 20 ms of one processor, the index 6 ms. For fewer, importing the index library
takes longer than a process with a single query would gain."""
MOST = 10**9
EXACT, OFF = "exact", "off"
ACCEPTED = f'a whole number of passages from 0 to {MOST}, "{EXACT}" or "{OFF}"'


@dataclass(frozen=True, slots=True)
class VectorIndexing:
    """Stores of at least `least` passages get an index, none for None; `used`: whether searches use it."""

    least: int | None = LEAST_PASSAGES
    used: bool = True

    def wanted(self, passages: int) -> bool:
        """Whether a store with this number of passages gets an index."""
        return self.least is not None and passages >= max(self.least, 1)

    def answers(self, passages: int) -> bool:
        """Whether searches use the index of a store with this number of passages."""
        return self.used and self.wanted(passages)


SHIPPED = VectorIndexing()
"""The setting of a workspace without any."""


def understood(value: object) -> VectorIndexing | None:
    """Parse a setting; None if invalid: a number of passages, "exact", which keeps an index for other processes and
    answers without it, or "off"."""
    if value == EXACT:
        return VectorIndexing(used=False)
    if value == OFF:
        return VectorIndexing(None, used=False)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return VectorIndexing(value)
    return None
