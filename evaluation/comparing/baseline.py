"""`eval baseline`: measures how much a pipeline adds to plain BM25, and what that means for the effort (feature E4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Unpack

import numpy as np

from speckit_memory.evaluation.comparing.compare import report_on
from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.comparing.storage import store_report
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.running.run import SEED, Evaluation, EvaluationOptions
from speckit_memory.evaluation.statistics.report import Report, as_document
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.ports import Column

KIND = "baseline"
PRESET = "bm25"
METRIC = "MRR@5"
RESAMPLES = 10_000
PAUSE, PROCEED = 0.80, 0.50
"""Shares of the pipeline's MRR@5 that plain BM25 reaches: from `PAUSE` up pause, below `PROCEED` full effort is due."""

Decision = Literal["pause", "proceed", "full"]
_MEANS: Mapping[Decision, str] = {
    "pause": "words alone reach 80 % or more: pause before adding more to the pipeline",
    "proceed": "words alone reach 50 to 80 %: proceed, and give a reason for each step",
    "full": "words alone reach less than 50 %: full effort on the pipeline is due",
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """BM25 against a pipeline: the ratio of their MRR@5 with its bootstrap interval over the same queries.

    The ratio is None where the pipeline finds nothing; then there is no decision.
    """

    comparison: CompareReport
    bm25: float
    pipeline: float
    ratio: float | None
    ci95: tuple[float, float] | None
    ENTRIES: ClassVar = {
        "comparison": "",
        "metric": "metric",
        "decision": "decision",
        "possible": "possible",
        "sentence": "sentence",
    }

    @property
    def metric(self) -> str:
        """The metric of both figures."""
        return METRIC

    @property
    def decision(self) -> Decision | None:
        """The decision by the ratio alone."""
        return None if self.ratio is None else _decided(self.ratio)

    @property
    def possible(self) -> tuple[Decision, ...]:
        """All decisions within the interval, the most cautious first."""
        if self.ci95 is None:
            return ()
        # A higher ratio is the more cautious decision, so the upper end comes first.
        low, high = map(_decided, self.ci95)
        order: tuple[Decision, ...] = ("pause", "proceed", "full")
        return order[order.index(high) : order.index(low) + 1]

    @property
    def sentence(self) -> str:
        """The decision in words, including its uncertainty."""
        name = self.comparison.pipelines[1]["name"]
        if self.ratio is None or self.ci95 is None or self.decision is None:
            return f"{name} has no relevant document among its first five, so nothing can be decided"
        text = (
            f"BM25 alone reaches {self.ratio:.0%} of the {METRIC} of {name} ({self.bm25:.3f} of {self.pipeline:.3f}, "
        )
        text += f"95 % interval {self.ci95[0]:.0%} to {self.ci95[1]:.0%})"
        if len(self.possible) > 1:
            return f"{text}; these queries do not decide between {' and '.join(self.possible)}: ask more of them"
        return f"{text}; {_MEANS[self.decision]}"

    def as_report(self) -> Report:
        """The decision, and the comparison that it rests on."""
        compared = self.comparison.as_report()
        return replace(
            compared,
            verdict=f"{self.sentence}\n{compared.verdict}",
            data={"baseline": as_document(self), **as_document(self.comparison)},
        )


def _decided(ratio: float) -> Decision:
    return "pause" if ratio >= PAUSE else "proceed" if ratio >= PROCEED else "full"


def baseline(
    source: GroundSource,
    pipeline: PipelineSource | None = None,
    *,
    store: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> Baseline:
    """Compares the preset bm25 with a pipeline.

    Args:
        source: Dataset or other source to measure on.
        pipeline: Path, preset or value; None for the pipeline that a search would use.
        store: Store next to which the report is kept; None keeps it nowhere.
        overrides: YAML values by "step.parameter", applied to the pipeline.
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: With every problem of the pipelines or the dataset.
    """
    evaluation = Evaluation(source, **options)
    (whole,) = evaluation.load([pipeline] if pipeline is not None else (), overrides)
    (words,) = evaluation.load([PRESET])
    # Asked twice: the difference of bm25 from itself is the noise of the measurement.
    report = report_on(evaluation.measure([words, whole, words], abstention=True), kind=KIND, at=evaluation.begun)
    first, second = (values[METRIC] for values in report.values.values())
    ratio, interval = ratio_of(first, second)
    found = Baseline(report, float(first.mean()), float(second.mean()), ratio, interval)
    return replace(found, comparison=store_report(report, store, {"baseline": as_document(found)}))


def ratio_of(first: Column, second: Column) -> tuple[float | None, tuple[float, float] | None]:
    """The ratio of two means over the same queries and its percentile bootstrap interval; None where `second` is all 0.

    Queries are resampled in pairs. A resample in which `second` is all 0 has no ratio and is left out.
    """
    if not second.any():
        return None, None
    # rows: (RESAMPLES, n) indices drawn with replacement; the same rows for both sides keep the pairing.
    rows = np.random.default_rng(SEED).integers(0, len(first), (RESAMPLES, len(first)))
    tops, bottoms = first[rows].mean(axis=1), second[rows].mean(axis=1)
    # ratio of means per resample: (resamples with a non-zero denominator,)
    drawn = tops[bottoms > 0] / bottoms[bottoms > 0]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(first.mean() / second.mean()), (float(low), float(high))
