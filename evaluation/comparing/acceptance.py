"""Tests whether a pipeline is good enough to serve, by absolute criteria: go, no-go, not applicable or not yet (E8).

Where every memory is new, the criterion on cold start would equal recall at ten and is not evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Unpack

from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.running.report import PipelineFigures
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
from speckit_memory.pipeline.configuration.loading import PipelineSource

LEAST_MRR, LEAST_CONSTITUTIONAL, LEAST_COLD_START = 0.70, 0.95, 0.90
Word = Literal["go", "no-go", "n/a", "not yet"]
Verdict = Literal["go", "no-go", "unknown"]
UNKNOWN = 3
"""Exit status of a gate that cannot be decided yet: it neither passed nor failed, and the files are valid."""
STATUS: Mapping[Verdict, int] = {"go": 0, "no-go": 1, "unknown": UNKNOWN}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion: the metric, its minimum, the value reached and the number of queries behind it.

    `reached` is None where no query can be measured; `missing` says what is needed to measure it later.
    """

    name: str
    least: float
    reached: float | None
    queries: int
    missing: str = ""
    ENTRIES: ClassVar = {"word": "verdict"}

    @property
    def word(self) -> Word:
        """The verdict on this criterion."""
        if self.reached is None:
            return "not yet" if self.missing else "n/a"
        return "go" if self.reached >= self.least else "no-go"


@dataclass(frozen=True, slots=True)
class GoodEnough:
    """All criteria of one pipeline on one dataset."""

    pipeline: str
    hash: str
    dataset: str
    digest: str
    queries: int
    criteria: tuple[Criterion, ...]
    warnings: tuple[str, ...]
    ENTRIES: ClassVar = {
        "pipeline": "pipeline.name",
        "hash": "pipeline.hash",
        "verdict": "verdict",
        "sentence": "sentence",
    }

    @property
    def verdict(self) -> Verdict:
        """No-go where a measured criterion fails; unknown where one cannot be measured yet; else go."""
        words = {one.word for one in self.criteria}
        return "no-go" if "no-go" in words else "unknown" if "not yet" in words else "go"

    @property
    def status(self) -> int:
        """The exit status."""
        return STATUS[self.verdict]

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        missed = [one.name for one in self.criteria if one.word == "no-go"]
        unknown = [one.name for one in self.criteria if one.word == "n/a"]
        waiting = [
            f"{one.name} cannot be measured yet: {one.missing}" for one in self.criteria if one.word == "not yet"
        ]
        text = f"{self.pipeline} misses {', '.join(missed)}" if missed else f"{self.pipeline} is good enough"
        if waiting:
            text = "; ".join([*([text] if missed else [f"whether {text} cannot be decided yet"]), *waiting])
        return f"{text}; these queries cannot measure {', '.join(unknown)}" if unknown else text

    def as_report(self) -> Report:
        """The verdict, and a row for each criterion."""
        word, outcome = {
            "go": ("passed", "pass"),
            "no-go": ("failed", "fail"),
            "unknown": ("cannot be decided yet", "undecided"),
        }[self.verdict]
        rows = [["criterion", "at least", "reached", "queries", "verdict"]]
        for one in self.criteria:
            reached = "-" if one.reached is None else f"{one.reached:.3f}"
            rows.append([one.name, f"{one.least:.2f}", reached, str(one.queries), one.word])
        return Report(
            f"Retrieval gate {word}",
            verdict=self.sentence,
            outcome=outcome,
            about=f"{self.dataset}: {self.queries:,} queries, digest {self.digest}",
            tables=[Table(rows)],
            notes=warnings_of(self.warnings),
            data=as_document(self),
        )


def good_enough(
    source: GroundSource,
    pipeline: PipelineSource | None = None,
    *,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> GoodEnough:
    """Measures a pipeline by absolute criteria: MRR@5, constitutional@5 and cold start@10.

    constitutional@5 is whether a constitutional document in the query's folder is among the first five; cold start@10
    is the share of the relevant documents of the last 48 hours that are among the first ten (`further_metrics`).

    Args:
        source: Dataset or other source to measure on.
        pipeline: Path, preset or value; None for the pipeline that a search would use.
        overrides: YAML values by "step.parameter".
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: With every problem of the pipeline or the dataset.
    """
    evaluation = Evaluation(source, **options)
    measured = evaluation.measure(evaluation.load([pipeline] if pipeline is not None else (), overrides))
    (figures,) = measured.report.pipelines
    return GoodEnough(
        pipeline=figures.name,
        hash=figures.hash,
        dataset=measured.report.dataset,
        digest=measured.ground.digest,
        queries=measured.report.queries,
        criteria=(
            Criterion("MRR@5", LEAST_MRR, figures.metrics["MRR@5"], measured.report.queries),
            _further("constitutional surfacing", LEAST_CONSTITUTIONAL, figures, "constitutional@5"),
            _cold_start(figures, measured.report.queries),
        ),
        warnings=tuple(measured.report.all_warnings()),
    )


def _cold_start(figures: PipelineFigures, queries: int) -> Criterion:
    found = _further("cold start", LEAST_COLD_START, figures, "cold start@10")
    # some queries have older relevant memories: the criterion is meaningful
    if found.queries < queries:
        return found
    missing = (
        f"all {queries:,} queries ask for memories of the last two days; some must ask for older ones, so that new "
        "ones compete with them"
    )
    return replace(found, reached=None, missing=missing)


def _further(name: str, least: float, figures: PipelineFigures, metric: str) -> Criterion:
    """A criterion on one of the further metrics."""
    assert figures.further is not None  # every measured pipeline has them
    figure = figures.further.metrics[metric]
    return Criterion(name, least, figure.mean, figure.n)
