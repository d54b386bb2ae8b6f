"""The report of an evaluation: figures per pipeline and comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.measuring.measure import Answer
from speckit_memory.evaluation.running.further_report import FurtherFigures, channel_lines, further_table
from speckit_memory.evaluation.statistics.comparison import MARGIN, Comparison
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
from speckit_memory.pipeline.ports import Column

_COMPLEXITIES = ("simple", "moderate", "complex")


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds per query at two percentiles, over `n` queries."""

    p50: float
    p95: float
    n: int

    @classmethod
    def of(cls, milliseconds: Sequence[float] | Column) -> Latency:
        """The percentiles of these times."""
        p50, p95 = np.percentile(np.asarray(milliseconds), (50, 95))
        return cls(round(float(p50), 3), round(float(p95), 3), len(milliseconds))


@dataclass(frozen=True, slots=True)
class IntentAccuracy:
    """How often the plan's intent equals the one assigned by a person, over the `n` queries that have one."""

    accuracy: float
    n: int


@dataclass(frozen=True, slots=True)
class DegradedPart:
    """A part of a pipeline that did not do its work in `queries` queries; `reason` is the first one given."""

    part: str
    queries: int
    reason: str


@dataclass(frozen=True, slots=True)
class AbstentionScores:
    """How a pipeline behaves where it should abstain; None where this cannot be measured.

    `warned` is the share of the `unanswerable` queries whose answer warned that nothing fits, `false_alarms` that of
    the other queries. `misled` is the share of the `tempted` queries, those with hard negatives (judged 0), in which a
    hard negative ranks above every relevant document.
    """

    unanswerable: int
    warned: float | None
    false_alarms: float
    tempted: int
    misled: float | None

    @classmethod
    def of(
        cls,
        answers: Sequence[Answer],
        judgements: Sequence[Mapping[str, float]],
        unanswerable: Sequence[Answer],
    ) -> AbstentionScores:
        """Computes the shares from the answers to judged queries and to unanswerable ones."""
        tempted = [
            # The first judged document of the answer decides; unjudged documents are passed over, not counted as 0.
            _misled(answer.ranked(judged), judged)
            for answer, judged in zip(answers, judgements, strict=True)
            if any(grade <= 0 for grade in judged.values())
        ]
        return cls(
            unanswerable=len(unanswerable),
            warned=_share([answer.gap for answer in unanswerable]),
            # A plain mean: `answers` is never empty here, since a dataset without scored queries is refused before.
            false_alarms=sum(answer.gap for answer in answers) / len(answers),
            tempted=len(tempted),
            misled=_share(tempted),
        )


def _misled(keys: Sequence[str], judged: Mapping[str, float]) -> bool:
    return next((judged[key] <= 0 for key in keys if key in judged), False)


def _share(told: Sequence[bool]) -> float | None:
    return sum(told) / len(told) if told else None


@dataclass(frozen=True, slots=True)
class PipelineFigures:
    """The figures of one pipeline. `metrics` are means over the queries.

    Where `degraded_queries` is above 0 the figures are those of an incomplete pipeline; `degraded_parts` says which
    parts were missing and why.
    """

    name: str
    hash: str
    index_s: float
    metrics: Mapping[str, float]
    latency: Latency
    by_complexity: Mapping[str, Latency]
    degraded_queries: int
    degraded_parts: tuple[DegradedPart, ...] = ()
    intent: IntentAccuracy | None = None
    restraint: AbstentionScores | None = None
    further: FurtherFigures | None = None
    budgets_ms: Mapping[str, float] = field(default_factory=dict)
    """The latency budget (p95) of each complexity."""
    ENTRIES: ClassVar = {
        "latency": "latency_ms",
        "by_complexity": "",
        "intent": "?intent",
        "restraint": "?restraint",
        "further": ".",
        "budgets_ms": "",
        "complexities": "latency_ms.by_complexity",
    }

    def budget_sentence(self) -> str:
        """Says which complexities are over and which are under their budgets; "" without budgets."""
        told = [
            f"{name} {latency.p95:.1f} ms, {'over' if latency.p95 > self.budgets_ms[name] else 'under'} "
            f"{self.budgets_ms[name]:g}"
            for name, latency in self.by_complexity.items()
            if name in self.budgets_ms
        ]
        return f"{self.name} against its latency budgets (p95): {'; '.join(told)}" if told else ""

    @property
    def complexities(self) -> dict[str, dict[str, Any]]:
        """The latency of each complexity, with its budget where it has one."""
        return {
            name: as_document(latency)
            | (
                {"budget_ms": self.budgets_ms[name], "over_budget": latency.p95 > self.budgets_ms[name]}
                if name in self.budgets_ms
                else {}
            )
            for name, latency in self.by_complexity.items()
        }


def figures(
    name: str,
    pipeline_hash: str,
    index_s: float,
    values: Mapping[str, Column],
    answers: Sequence[Answer],
    queries: Sequence[DatasetQuery],
    further: FurtherFigures | None = None,
    budgets_ms: Mapping[str, float] | None = None,
) -> PipelineFigures:
    """The figures of one pipeline from its answers and their metrics.

    Args:
        name: The pipeline's name in the report.
        pipeline_hash: The pipeline's hash.
        index_s: Time of indexing in seconds.
        values: One value per query by metric.
        answers: The answers, aligned with `queries`.
        queries: The queries.
        further: The further metrics.
        budgets_ms: Latency budgets by complexity.
    """
    times = {level: [a.latency_ms for a in answers if a.complexity == level] for level in _COMPLEXITIES}
    parts = Counter(part for answer in answers for part in answer.degraded)
    # reversed, so that the first reason wins
    reasons = {part: reason for answer in reversed(answers) for part, reason in answer.degraded.items()}
    meant = [answer.intent == query.intent for answer, query in zip(answers, queries, strict=True) if query.intent]
    return PipelineFigures(
        name=name,
        hash=pipeline_hash,
        index_s=round(index_s, 3),
        # column: (n,) float64, one value per query, in the order of `queries`.
        metrics={metric: float(column.mean()) for metric, column in values.items()},
        latency=Latency.of([answer.latency_ms for answer in answers]),
        by_complexity={level: Latency.of(milliseconds) for level, milliseconds in times.items() if milliseconds},
        degraded_queries=sum(bool(answer.degraded) for answer in answers),
        degraded_parts=tuple(DegradedPart(part, count, reasons[part]) for part, count in sorted(parts.items())),
        intent=IntentAccuracy(sum(meant) / len(meant), len(meant)) if meant else None,
        further=further,
        budgets_ms=budgets_ms or {},
    )


@dataclass(frozen=True, slots=True)
class EvalReport:
    """One evaluation. `queries` were scored; `no_relevant` more have no relevant document and were left out.

    `embedder` is the id of the embedding model, the same for all pipelines; empty without vectors. `warnings` are
    sentences on the limits of the figures, such as documents that could not be indexed.
    """

    dataset: str
    documents: int
    queries: int
    no_relevant: int
    pipelines: tuple[PipelineFigures, ...]
    comparisons: tuple[Comparison, ...]
    embedder: str = ""
    warnings: tuple[str, ...] = ()
    ENTRIES: ClassVar = {"no_relevant": "excluded.no_relevant"}

    def all_warnings(self) -> list[str]:
        """Warnings about parts of pipelines that did not work, followed by `warnings`."""
        missing = [
            f"{pipeline.name} ran {lost.queries:,} of {self.queries:,} queries without {lost.part} ({lost.reason})"
            for pipeline in self.pipelines
            for lost in pipeline.degraded_parts
        ]
        return [*missing, *self.warnings]

    def as_report(self) -> Report:
        """A table of the figures, best values marked with *, and a sentence for each comparison."""
        indexed = f"indexed in {self.pipelines[0].index_s:.1f} s " if self.pipelines[0].index_s else ""
        further = {pipeline.name: pipeline.further for pipeline in self.pipelines if pipeline.further}
        restraint = [restraint_sentence(one.name, one.restraint) for one in self.pipelines if one.restraint]
        return Report(
            dataset_title(self.dataset, self.documents, self.queries, self.no_relevant),
            about=f"{indexed}with {self.embedder or 'no vectors'}",
            tables=[_table(self.pipelines), *([further_table(further)] if further else [])],
            verdict="\n".join(sentence(comparison, self.queries) for comparison in self.comparisons),
            notes=[
                *filter(None, (pipeline.budget_sentence() for pipeline in self.pipelines)),
                *channel_lines(further),
                *restraint,
                *warnings_of(self.all_warnings()),
            ],
            data=as_document(self),
        )


def dataset_title(dataset: str, documents: int | None, queries: int, no_relevant: int) -> str:
    """The title of a report on the queries of a dataset.

    Args:
        dataset: The name of the dataset.
        documents: The number of its documents; None where it is unknown.
        queries: The number of scored queries.
        no_relevant: The number of further queries without a relevant document.
    """
    over = "" if documents is None else f"{documents:,} documents, "
    left_out = f" ({no_relevant:,} more have no relevant document and are left out)" if no_relevant else ""
    return f"{dataset}: {over}{queries:,} queries{left_out}"


def restraint_sentence(name: str, restraint: AbstentionScores) -> str:
    """A pipeline's abstention in words."""
    told = []
    if restraint.warned is not None:
        text = f"warns in {restraint.warned:.0%} of {restraint.unanswerable:,} unanswerable queries and "
        told.append(f"{text}in {restraint.false_alarms:.0%} of the others")
    if restraint.misled is not None:
        told.append(f"puts a hard negative first in {restraint.misled:.0%} of {restraint.tempted:,} queries with one")
    return f"{name} {'; it '.join(told)}"


def _table(pipelines: Sequence[PipelineFigures]) -> Table:
    rows = [["pipeline", *METRICS, "p50 ms", "p95 ms", "degraded", "intent"]]
    for pipeline in pipelines:
        scores = [f"{pipeline.metrics[metric]:.4f}" for metric in METRICS]
        times = [f"{time:.1f}" for time in (pipeline.latency.p50, pipeline.latency.p95)]
        intent = f"{pipeline.intent.accuracy:.0%}" if pipeline.intent else "-"
        rows.append([pipeline.name, *scores, *times, str(pipeline.degraded_queries), intent])
    # columns 1 to len(METRICS) are metrics, followed by p50 and p95
    last = len(METRICS) + 3
    for column in range(1, last):
        best = (max if column <= len(METRICS) else min)((row[column] for row in rows[1:]), key=float)
        for row in rows[1:]:
            marked = len(pipelines) > 1 and row[column] == best
            row[column] += "*" if marked else " "
        rows[0][column] += " "
    return Table(rows, "* the best in its column" if len(pipelines) > 1 else "")


def sentence(comparison: Comparison, queries: int) -> str:
    """A comparison in words."""
    low, high = comparison.ci95
    text = {
        "better": f"{comparison.b} is better than {comparison.a}",
        "worse": f"{comparison.b} is worse than {comparison.a}",
        "same": f"{comparison.b} does the same as {comparison.a}",
        "undecided": f"{comparison.b} against {comparison.a} is undecided",
    }[comparison.verdict]
    text += f" on {comparison.metric}: {comparison.delta:+.4f} (95 % interval {low:+.4f} to {high:+.4f}, "
    text += f"p {comparison.p:.4f}, adjusted {comparison.p_adjusted:.4f})"
    if comparison.queries_needed is not None:
        shown = f"a difference of this size, or none above {MARGIN:g}" if comparison.delta else f"none above {MARGIN:g}"
        text += f"; about {comparison.queries_needed:,} queries in all would show {shown}"
    if comparison.verdict == "undecided" and comparison.minimum_detectable_effect:
        text += f"; {queries:,} queries show differences from {comparison.minimum_detectable_effect:.3f} up"
    return text
