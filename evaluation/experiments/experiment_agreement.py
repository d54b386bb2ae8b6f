"""Measures how far the answers of two pipelines to many queries agree, and finds those that differ most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import Agreements, Estimate, QueryContrast
from speckit_memory.evaluation.statistics.agreement import agree_each
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


def agreement_columns(contrasts: Iterable[QueryContrast]) -> Column:
    """float64[8, queries]: the figures of each query for `agreements`; NaN where there is no tau."""
    figures = [
        (
            found.ordering_difference,
            found.only_scores_differ,
            found.common_rows,
            found.shifted,
            found.kendall_tau_b,
            found.overlap_5,
            found.overlap_10,
            found.rbo,
        )
        for found in (one.agreement for one in contrasts)
    ]
    return np.array(figures, np.float64).reshape(-1, 8).T.copy()


def agreements(columns: Column) -> Agreements:
    """Mean agreements over many queries, with anytime-valid intervals."""
    differences, only_scores, common, shifted = (int(counts.sum()) for counts in columns[:4])
    tau, *shares = columns[4:]
    overlap_5, overlap_10, rbo = (_estimate(column, 0.0) for column in shares)
    return Agreements(
        queries=columns.shape[1],
        ordering_differences=differences,
        only_scores=only_scores,
        kendall_tau_b=_estimate(tau[~np.isnan(tau)], -1.0),
        overlap_5=overlap_5,
        overlap_10=overlap_10,
        rbo=rbo,
        mean_shift=shifted / common if common else None,
    )


def _estimate(column: Column, least: float) -> Estimate | None:
    """The mean of values in [`least`, 1] with its interval; None without a value."""
    if not len(column):
        return None
    return Estimate(float(column.mean()), _anytime(column, least), len(column))


def _anytime(column: Column, least: float) -> tuple[float, float]:
    """The anytime-valid interval of the mean; values are scaled to [-1, 1], where the bets lose no power."""
    # maps [least, 1] to [-1, 1] and back
    half = (1 - least) / 2
    # rounding moves each value, and so the mean, by at most half a step: `slack` widens the interval by as much
    slack = _STEP / 2 if len(column) > _RESAMPLED else 0.0
    column = np.round(column / _STEP) * _STEP if slack else column  # fewer distinct values: each is one bet
    low, high = anytime_interval(np.clip((column - least) / half - 1, -1.0, 1.0))
    return max(least, least + (low + 1) * half - slack), min(1.0, least + (high + 1) * half + slack)
