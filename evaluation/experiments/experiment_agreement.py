"""Measures how far the answers of two pipelines to many queries agree, and finds those that differ most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import Agreements, Estimate, QueryContrast
from speckit_memory.evaluation.statistics.agreement import Agreement, agree_each
from speckit_memory.evaluation.statistics.sequential import anytime_interval
from speckit_memory.memory.store.evaluation.records import AnswerRecord, RecordedPair
from speckit_memory.pipeline.ports import Column

_DIFFERING = 10
"""Number of most different queries in a report."""
_SHOWN_DIGITS = 3
"""Displayed decimals of their overlap; values that look equal count as equal."""
_RESAMPLED = 2_000
"""Above this number of queries, values are rounded before their interval is computed."""
_STEP = 0.001
"""The rounding step for many live queries; the interval is widened by half of it at each end."""


def contrasts(pairs: Sequence[RecordedPair]) -> list[QueryContrast]:
    """The pairs, each with the agreement of its two answers."""
    rankings = ((_ranking(pair.control), _ranking(pair.variant.answer)) for pair in pairs)
    return list(map(QueryContrast, pairs, agree_each(rankings)))


def most_different(contrasts: Sequence[QueryContrast]) -> tuple[QueryContrast, ...]:
    """The ten queries that agree least by displayed rank-biased overlap; ties are sorted by id."""
    return tuple(
        nsmallest(_DIFFERING, contrasts, key=lambda one: (round(one.agreement.rbo, _SHOWN_DIGITS), one.pair.query.id))
    )


def _ranking(answer: AnswerRecord) -> Iterable[tuple[int, float]]:
    return zip(answer.memories, answer.scores, strict=True)


def agreements(found: Sequence[Agreement[int]]) -> Agreements:
    """Mean agreements over many queries, with anytime-valid intervals."""
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
    """The mean of values in [`least`, 1] with its interval; None without a value."""
    column = np.array([value for value in values if value is not None], np.float64)
    if not len(column):
        return None
    return Estimate(float(column.mean()), _anytime(column, least), len(column))


def _anytime(column: Column, least: float) -> tuple[float, float]:
    """The anytime-valid interval of the mean; values are scaled to [-1, 1], where the bets lose no power."""
    # maps [least, 1] to [-1, 1] and back
    half = (1 - least) / 2
    slack = _STEP / 2 if len(column) > _RESAMPLED else 0.0
    column = np.round(column / _STEP) * _STEP if slack else column  # fewer distinct values: each is one bet
    low, high = anytime_interval(np.clip((column - least) / half - 1, -1.0, 1.0))
    return max(least, least + (low + 1) * half - slack), min(1.0, least + (high + 1) * half + slack)
