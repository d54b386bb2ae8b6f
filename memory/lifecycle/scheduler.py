"""How a review changes a memory: the four grades of FSRS, and when the next one is due (feature M2).

The curve is that of `fsrs`. By how much a grade changes stability and difficulty is the catalogue's (003, "FSRS
Scheduling"): simpler than the fitted formulas of FSRS, which need the reviews of a person to be fitted to.
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
"""What is left of the stability of a memory that failed its reader."""
GAIN = 0.1
"""What each step of ease, 11 less the difficulty, adds to the factor of a success."""
SPACING = 0.5
"""By how much a success counts more the further a memory was gone."""


class Grade(IntEnum):
    """How well a memory served whoever needed it; the numbers are those of FSRS."""

    AGAIN = 1
    HARD = 2
    GOOD = 3
    EASY = 4


SUCCESS = {Grade.HARD: 0.8, Grade.GOOD: 1.0, Grade.EASY: 1.3}
"""By how much the grades of a success differ."""
HARDER = {Grade.AGAIN: 1.0, Grade.HARD: 0.5, Grade.GOOD: 0.0, Grade.EASY: -0.5}
"""What each grade adds to the difficulty."""


@dataclass(frozen=True, slots=True)
class Strength:
    """How well a memory is kept: `stability` in days until its retrievability is 90 %, `difficulty` in [1, 10]."""

    stability: float = 1.0
    difficulty: float = 5.0


def reviewed(before: Strength, grade: Grade, recalled: float) -> Strength:
    """The strength after a review with this grade, when the retrievability was `recalled`, in [0, 1]."""
    if grade is Grade.AGAIN:
        stability = before.stability * LAPSE
    else:
        ease = 1.0 + (11.0 - before.difficulty) * GAIN
        stability = before.stability * ease * SUCCESS[grade] * (1.0 + SPACING * (1.0 - recalled))
    return Strength(
        min(MOST_STABILITY, max(LEAST_STABILITY, stability)),
        min(MOST_DIFFICULTY, max(LEAST_DIFFICULTY, before.difficulty + HARDER[grade])),
    )


def interval(stability: float, retention: float = RETENTION) -> float:
    """Days after a review until the retrievability has fallen to `retention`, in (0, 1): at 0.9 the stability."""
    return stability / FACTOR * (float(retention ** (1.0 / DECAY)) - 1.0)
