"""Measures the learning of a task: scores before and after, their differences and the learning index (feature M15).

Scores are self-assessments, integers from 0 to 100. Uncertainty is good when it falls, so its difference has the
opposite sign: every positive difference is a gain.
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
"""The minimum index of each band; below all of them it is a regression."""
TREND_TASKS = 4
"""The minimum number of tasks for a trend: two per half."""
TREND_STEP = 5.0
"""The trend is stable if the mean indexes of the halves differ by no more than this, less than one band."""

Band = Literal["significant", "moderate", "incremental", "execution-focused", "regression"]
Trend = Literal["improving", "stable", "declining", "unknown"]


@dataclass(frozen=True, slots=True)
class TaskScores:
    """Self-assessed knowledge, uncertainty and completeness of the context; each from 0 to 100."""

    knowledge: int
    uncertainty: int
    context: int


@dataclass(frozen=True, slots=True)
class TaskLearning:
    """The changes: differences from -100 to 100, positive for a gain, and the index, their weighted sum."""

    knowledge: int
    uncertainty: int
    """The decrease of uncertainty."""
    context: int
    index: float

    @property
    def band(self) -> Band:
        """The band of the index."""
        return band(self.index)


@dataclass(frozen=True, slots=True)
class LearningSummary:
    """Means over the complete records among `tasks`, and the trend of their indexes; None without a complete one."""

    tasks: int
    complete: int
    knowledge: float | None
    uncertainty: float | None
    context: float | None
    index: float | None
    trend: Trend


def learning_index(before: TaskScores, after: TaskScores) -> TaskLearning:
    """The differences between two assessments and the index 0.4·ΔK + 0.35·ΔU + 0.25·ΔC, to two decimals."""
    knowledge = after.knowledge - before.knowledge
    uncertainty = before.uncertainty - after.uncertainty
    context = after.context - before.context
    index = KNOWLEDGE * knowledge + UNCERTAINTY * uncertainty + CONTEXT * context
    return TaskLearning(knowledge, uncertainty, context, round(index, DIGITS))


def band(index: float) -> Band:
    """The band of a learning index; its limits 40, 15, 5 and 0 belong to the higher band."""
    return next((name for least, name in BANDS if index >= least), "regression")


def summary(tasks: int, complete: Sequence[TaskLearning]) -> LearningSummary:
    """The summary of `tasks` records, of which these are complete, in order of completion."""

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
    """Whether the later half of the tasks has a higher mean index than the earlier half; a middle task counts for
    neither."""
    if len(indexes) < TREND_TASKS:
        return "unknown"
    half = len(indexes) // 2
    rise = fmean(indexes[-half:]) - fmean(indexes[:half])
    return "stable" if abs(rise) <= TREND_STEP else "improving" if rise > 0 else "declining"
