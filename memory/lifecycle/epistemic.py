"""What was learned by a task: scores before and after it, their differences and the learning index (feature M15).

Scores are what somebody says of themselves, whole numbers from 0 to 100. Uncertainty is good when it falls, so that its
difference is taken the other way round: every positive difference is a gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

LEAST, MOST = 0, 100
KNOWLEDGE, UNCERTAINTY, CONTEXT = 0.40, 0.35, 0.25
"""Weights of the three differences in the learning index."""
DIGITS = 2
BANDS: tuple[tuple[float, Band], ...] = (
    (40.0, "significant"),
    (15.0, "moderate"),
    (5.0, "incremental"),
    (0.0, "execution-focused"),
)
"""The least index of each band; below all of them it is a regression."""
TREND_TASKS = 4
"""So few tasks have no trend: each half needs two."""
TREND_STEP = 5.0
"""Halves whose mean indexes are no further apart go neither up nor down: less than one band is no news."""

Band = Literal["significant", "moderate", "incremental", "execution-focused", "regression"]
Trend = Literal["improving", "stable", "declining", "unknown"]


@dataclass(frozen=True, slots=True)
class TaskScores:
    """How much somebody knew, how unsure they were, and how complete their context was; each from 0 to 100."""

    knowledge: int
    uncertainty: int
    context: int


@dataclass(frozen=True, slots=True)
class TaskLearning:
    """What changed: differences from -100 to 100, positive for a gain, and the index that weighs them."""

    knowledge: int
    uncertainty: int
    """How far uncertainty fell."""
    context: int
    index: float

    @property
    def band(self) -> Band:
        """What the index means."""
        return band(self.index)


@dataclass(frozen=True, slots=True)
class LearningSummary:
    """Means over the complete ones of `tasks` records, and where their indexes go; None without a complete one."""

    tasks: int
    complete: int
    knowledge: float | None
    uncertainty: float | None
    context: float | None
    index: float | None
    trend: Trend


def learned(before: TaskScores, after: TaskScores) -> TaskLearning:
    """The differences between two states of knowledge, and `0.4·ΔK + 0.35·ΔU + 0.25·ΔC` of them, to two decimals."""
    knowledge = after.knowledge - before.knowledge
    uncertainty = before.uncertainty - after.uncertainty
    context = after.context - before.context
    index = KNOWLEDGE * knowledge + UNCERTAINTY * uncertainty + CONTEXT * context
    return TaskLearning(knowledge, uncertainty, context, round(index, DIGITS))


def band(index: float) -> Band:
    """The band of a learning index: 40, 15, 5 and 0 are its borders, and belong to the band above."""
    return next((name for least, name in BANDS if index >= least), "regression")


def summary(tasks: int, complete: Sequence[TaskLearning]) -> LearningSummary:
    """What the complete ones among so many tasks say together; they come in the order in which they were completed."""

    def mean(values: list[float]) -> float | None:
        return round(fmean(values), DIGITS) if values else None

    return LearningSummary(
        tasks=tasks,
        complete=len(complete),
        knowledge=mean([one.knowledge for one in complete]),
        uncertainty=mean([one.uncertainty for one in complete]),
        context=mean([one.context for one in complete]),
        index=mean([one.index for one in complete]),
        trend=_trend([one.index for one in complete]),
    )


def _trend(indexes: Sequence[float]) -> Trend:
    """Whether the later half of the tasks has a higher mean index than the earlier one; a middle one counts for
    neither."""
    if len(indexes) < TREND_TASKS:
        return "unknown"
    half = len(indexes) // 2
    rise = fmean(indexes[-half:]) - fmean(indexes[:half])
    return "stable" if abs(rise) <= TREND_STEP else "improving" if rise > 0 else "declining"
