"""The scales of scores. Columns may only be combined if their scales agree or are normalised first."""

from __future__ import annotations

import math
from enum import StrEnum


class Scale(StrEnum):
    """The meaning of the numbers of a score column."""

    BM25 = "bm25"
    """Unbounded sums of term weights; comparable within one query and channel only."""
    COSINE = "cosine"
    """Cosine similarity, [-1, 1] as channels return it; sums with other values keep the name."""
    UNIT = "unit"
    """[0, 1], 1 best. The frame clips to the interval, so that rounding never leaves it."""
    RANK_TERM = "rank_term"
    """Sums of w / (k + rank): small positive numbers."""
    Z_SCORE = "z_score"
    """Standard deviations from a mean; sums of them keep the name."""
    BOOST = "boost"
    """A unit-interval score with boosts added or multiplied on top; may exceed 1."""
    MARGINAL = "marginal"
    """Marginal relevance of greedy selection (MMR); non-increasing, may be negative."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score that a component may return on this scale."""
        match self:
            case Scale.UNIT:
                return 0.0, 1.0
            case Scale.COSINE:
                return -1.0, 1.0
            case Scale.BM25 | Scale.RANK_TERM:
                return 0.0, math.inf
        return -math.inf, math.inf

    @property
    def additive(self) -> bool:
        """True if an additive boost on the unit scale may be added without a normaliser."""
        return self in (Scale.UNIT, Scale.BOOST)

    @property
    def multipliable(self) -> bool:
        """True if a factor above 1 raises every score, since none is negative."""
        return self not in (Scale.COSINE, Scale.Z_SCORE, Scale.MARGINAL)

    @property
    def widened(self) -> Scale:
        """The scale after boosts: scores may leave the unit interval; every other scale keeps its name."""
        return Scale.BOOST if self is Scale.UNIT else self
