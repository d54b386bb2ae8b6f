"""The cost of a variant compared with its control, in milliseconds, from the answers of both to the same queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import (
    CostDifference,
    LatencyVerdict,
    NoiseFloor,
    StepFigures,
)
from speckit_memory.evaluation.running.report import Latency
from speckit_memory.evaluation.statistics.sequential import median_interval
from speckit_memory.memory.store.evaluation.packing import step_times
from speckit_memory.memory.store.evaluation.records import AnswerRecord, RecordedPair
from speckit_memory.pipeline.ports import Column

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
