"""How far the answers of two pipelines to many queries agree, and on which they differ most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import Agreements, Contrast, Estimate
from speckit_memory.evaluation.statistics.agreement import Agreement, agree
from speckit_memory.evaluation.statistics.sequential import anytime_interval
from speckit_memory.memory.store.evaluation.records import AnswerRecord, Pair
from speckit_memory.pipeline.ports import Column

_DIFFERING = 10
"""How many of the queries that differ most a report shows."""
_SHOWN_DIGITS = 3
"""Decimals of the figure that is shown beside each of them: what reads alike there is equal."""
_RESAMPLED = 2_000
"""Up to so many queries an interval of a mean is resampled; beyond, the normal one is the same to three digits."""
_STEP = 0.001
"""To which the values of that many live queries are rounded; the interval is widened by it."""


def contrast(pair: Pair) -> Contrast:
    """A pair with the agreement of its two answers."""
    return Contrast(pair, agree(_ranking(pair.control), _ranking(pair.variant.answer)))


def most_different(contrasts: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """The ten that agree least by rank-biased overlap as reports show it, among equals in the order of their ids."""
    order = sorted(contrasts, key=lambda one: (round(one.agreement.rbo, _SHOWN_DIGITS), one.pair.query.id))
    return tuple(order[:_DIFFERING])


def _ranking(answer: AnswerRecord) -> list[tuple[int, float]]:
    return list(zip(answer.memories, answer.scores, strict=True))


def agreements(found: Sequence[Agreement[int]]) -> Agreements:
    """The means over many queries; those that are `live` have intervals that hold at every look at once."""
    common = sum(one.common_rows for one in found)
    return Agreements(
        queries=len(found),
        ordering_differences=sum(one.ordering_difference for one in found),
        only_scores=sum(one.only_scores_differ for one in found),
        kendall_tau_b=_estimate((one.kendall_tau_b for one in found), -1.0),
        overlap_5=_estimate((one.overlap_5 for one in found), 0.0),
        overlap_10=_estimate((one.overlap_10 for one in found), 0.0),
        rbo=_estimate((one.rbo for one in found), 0.0),
        mean_shift=sum(one.shifted for one in found) / common if common else None,
    )


def _estimate(values: Iterable[float | None], least: float) -> Estimate | None:
    """The mean of values in [`least`, 1]."""
    column = np.array([value for value in values if value is not None], np.float64)
    if not len(column):
        return None
    return Estimate(float(column.mean()), _anytime(column, least), len(column))


def _anytime(column: Column, least: float) -> tuple[float, float]:
    """The interval of the mean at every look; the values are stretched to [-1, 1], where the bets lose nothing."""
    half = (1 - least) / 2
    slack = _STEP / 2 if len(column) > _RESAMPLED else 0.0
    column = np.round(column / _STEP) * _STEP if slack else column  # few different values are betted on at once
    low, high = anytime_interval(np.clip((column - least) / half - 1, -1.0, 1.0))
    return max(least, least + (low + 1) * half - slack), min(1.0, least + (high + 1) * half + slack)
