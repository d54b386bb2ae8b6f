"""How far the answers of two pipelines to many queries agree, which differ most, and what the variant costs (ms)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import (
    Agreements,
    CostDifference,
    Estimate,
    LatencyVerdict,
    NoiseFloor,
    QueryContrast,
    StepFigures,
)
from speckit_memory.evaluation.running.report import Latency
from speckit_memory.evaluation.statistics.agreement import agree_each
from speckit_memory.evaluation.statistics.sequential import anytime_interval, median_interval
from speckit_memory.memory.store.evaluation.packing import step_times
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


_STAGES = ("candidates", "fusion", "rerank", "annotate")


def answered_pairs(pairs: Iterable[RecordedPair]) -> list[RecordedPair]:
    """The pairs in which both pipelines gave an answer."""
    return [pair for pair in pairs if not pair.control.failure and not pair.variant.answer.failure]


def overhead(pairs: Sequence[RecordedPair]) -> Latency | None:
    """How much longer the variant takes than the control, query by query; None without queries."""
    return _latency([_longer(pair) for pair in pairs])


def cost(pairs: Sequence[RecordedPair], *, budget_ms: float) -> CostDifference:
    """The cost of the variant over all its queries; `spent` also includes the queries on which it failed.

    It is slower or faster when the anytime-valid interval of the median overhead excludes 0.
    """
    both = answered_pairs(pairs)
    # paired: variant minus control of the same query
    interval = median_interval(np.array([_longer(pair) for pair in both]))
    return CostDifference(
        overhead=overhead(both),
        median_ci95=interval,
        verdict=_verdict(interval),
        spent=_latency([pair.variant.spent_ms for pair in pairs]),
        served_overhead=_latency([pair.variant.dark_run_overhead_ms for pair in pairs]),
        budget_ms=budget_ms,
        over_budget=sum(pair.variant.spent_ms > budget_ms for pair in pairs),
    )


def step_figures(pairs: Sequence[RecordedPair]) -> tuple[StepFigures, ...]:
    """The times of every step of either pipeline, by stage; steps of the control come first, then those of the
    variant alone."""
    control, _ = _by_step(pair.control for pair in pairs)
    variant, shared = _by_step(pair.variant.answer for pair in pairs)
    # stable: within a stage, the steps of the control in their order, then those of the variant alone
    steps = sorted(dict.fromkeys([*control, *variant]), key=lambda step: _STAGES.index(step[0]))
    return tuple(
        StepFigures(*step, _latency(control.get(step, ())), _latency(variant.get(step, ())), shared.get(step, 0))
        for step in steps
    )


def noise_floor(pairs: Sequence[RecordedPair]) -> NoiseFloor | None:
    """The control compared with itself, from pairs in which it answered twice; None without such pairs."""
    both = answered_pairs(pairs)
    if not both:
        return None
    differences = sum(pair.control.memories != pair.variant.answer.memories for pair in both)
    return NoiseFloor(len(both), differences, overhead(both))


def _longer(pair: RecordedPair) -> float:
    return pair.variant.answer.total_ms - pair.control.total_ms


def _verdict(interval: tuple[float, float] | None) -> LatencyVerdict:
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "undecided"
    return "slower" if interval[0] > 0 else "faster"


def _by_step(answers: Iterable[AnswerRecord]) -> tuple[dict[tuple[str, str], Column], dict[tuple[str, str], int]]:
    times: dict[tuple[str, str], list[Column]] = {}
    shared: dict[tuple[str, str], int] = {}
    for layout, milliseconds in step_times(answer.steps for answer in answers):
        for (stage, step, _, was_shared), column in zip(layout, milliseconds.T, strict=True):
            times.setdefault((stage, step), []).append(column)
            shared[stage, step] = shared.get((stage, step), 0) + was_shared * len(column)
    return {name: np.concatenate(columns) for name, columns in times.items()}, shared


def _latency(milliseconds: Sequence[float] | Column) -> Latency | None:
    return Latency.of(milliseconds) if len(milliseconds) else None
