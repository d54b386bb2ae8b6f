"""The effect of a review on a memory: the four grades of FSRS, and when the next review is due (feature M2).

The curve is that of `fsrs`. The effects of grades on stability and difficulty are the catalogue's (003, "FSRS
Scheduling"): simpler than the formulas of FSRS, whose parameters are fitted to the reviews of one person.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from speckit_memory.memory.lifecycle.fsrs import DECAY, FACTOR

RETENTION = 0.9
"""The retrievability at which a review is due."""
LEAST_STABILITY, MOST_STABILITY = 0.1, 36_500.0
"""Days."""
LEAST_DIFFICULTY, MOST_DIFFICULTY = 1.0, 10.0
LAPSE = 0.2
"""Factor on the stability of a memory whose review failed."""
GAIN = 0.1
"""Growth of the success factor per point of ease (11 minus the difficulty)."""
SPACING = 0.5
"""Growth of the success factor with forgetting (1 minus the retrievability)."""


class Grade(IntEnum):
    """How well a memory served its reader; the numbers are those of FSRS."""

    AGAIN = 1
    HARD = 2
    GOOD = 3
    EASY = 4


SUCCESS = {Grade.HARD: 0.8, Grade.GOOD: 1.0, Grade.EASY: 1.3}
"""Factor on stability by the grade of a success."""
HARDER = {Grade.AGAIN: 1.0, Grade.HARD: 0.5, Grade.GOOD: 0.0, Grade.EASY: -0.5}
"""Change of difficulty by grade."""


@dataclass(frozen=True, slots=True)
class Strength:
    """The memory strength: `stability` in days until retrievability is 90 %, `difficulty` in [1, 10]."""

    stability: float = 1.0
    difficulty: float = 5.0


def review_strength(before: Strength, grade: Grade, recalled: float) -> Strength:
    """The strength after a review with this grade at retrievability `recalled`, in [0, 1]."""
    if grade is Grade.AGAIN:
        stability = before.stability * LAPSE
    else:
        # S' = S · (1 + (11 - D) · 0.1) · factor of the grade · (1 + 0.5 · (1 - R))
        ease = 1.0 + (11.0 - before.difficulty) * GAIN
        stability = before.stability * ease * SUCCESS[grade] * (1.0 + SPACING * (1.0 - recalled))
    return Strength(
        min(MOST_STABILITY, max(LEAST_STABILITY, stability)),
        min(MOST_DIFFICULTY, max(LEAST_DIFFICULTY, before.difficulty + HARDER[grade])),
    )


def interval(stability: float, retention: float = RETENTION) -> float:
    """Days after a review until retrievability falls to `retention`, in (0, 1): at 0.9 this is the stability."""
    # R(t) = retention solved for t
    return stability / FACTOR * (float(retention ** (1.0 / DECAY)) - 1.0)
