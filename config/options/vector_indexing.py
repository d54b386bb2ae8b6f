"""From how many passages on an approximate index finds the vectors nearest to a query (docs/large-stores.md)."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_PASSAGES = 200_000
"""To compare all of so many vectors takes 20 ms of one processor, by the index 6 ms. Below, the library that holds the
index takes longer to import than a process that asks one question would win by it."""
MOST = 10**9
EXACT, OFF = "exact", "off"
ACCEPTED = f'a whole number of passages from 0 to {MOST}, "{EXACT}" or "{OFF}"'


@dataclass(frozen=True, slots=True)
class VectorIndexing:
    """Stores of at least `least` passages get an index, none does for None; `used` tells whether it answers."""

    least: int | None = LEAST_PASSAGES
    used: bool = True

    def wanted(self, passages: int) -> bool:
        """Whether a store of so many passages gets an index."""
        return self.least is not None and passages >= max(self.least, 1)

    def answers(self, passages: int) -> bool:
        """Whether the index of a store of so many passages answers."""
        return self.used and self.wanted(passages)


SHIPPED = VectorIndexing()
"""What holds when nobody decides."""


def understood(value: object) -> VectorIndexing | None:
    """What somebody wrote, None for what is not accepted: a number of passages, "exact", which leaves an index to
    others and answers without it, or "off"."""
    if value == EXACT:
        return VectorIndexing(used=False)
    if value == OFF:
        return VectorIndexing(None, used=False)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return VectorIndexing(value)
    return None
