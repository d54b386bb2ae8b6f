"""The report of an evaluation: figures per pipeline and comparisons, as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.measuring.measure import Answer
from speckit_memory.evaluation.running.further_report import FurtherFigures, channel_lines, further_table
from speckit_memory.evaluation.statistics.comparison import MARGIN, Comparison
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.tables import Block, Table, plain_text, round_figures
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

    def budget_sentence(self) -> str:
        """Says which complexities are over and which are under their budgets; "" without budgets."""
        told = [
            f"{name} {latency.p95:.1f} ms, {'over' if latency.p95 > self.budgets_ms[name] else 'under'} "
            f"{self.budgets_ms[name]:g}"
            for name, latency in self.by_complexity.items()
            if name in self.budgets_ms
        ]
        return f"{self.name} against its latency budgets (p95): {'; '.join(told)}" if told else ""

    def _latency_json(self, name: str, latency: Latency) -> dict[str, Any]:
        if name not in self.budgets_ms:
            return asdict(latency)
        budget = self.budgets_ms[name]
        return {**asdict(latency), "budget_ms": budget, "over_budget": latency.p95 > budget}

    def as_json(self) -> dict[str, Any]:
        """The entry of `pipelines`."""
        document: dict[str, Any] = {
            "name": self.name,
            "hash": self.hash,
            "index_s": self.index_s,
            "metrics": round_figures(self.metrics),
            "latency_ms": {
                "p50": self.latency.p50,
                "p95": self.latency.p95,
                "by_complexity": {name: self._latency_json(name, one) for name, one in self.by_complexity.items()},
            },
            "degraded_queries": self.degraded_queries,
            "degraded_parts": [asdict(part) for part in self.degraded_parts],
        }
        if self.intent is not None:
            document["intent"] = round_figures(asdict(self.intent))
        if self.restraint is not None:
            document["restraint"] = round_figures(asdict(self.restraint))
        if self.further is not None:
            document |= self.further.as_json()
        return document


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

    def as_json(self) -> dict[str, Any]:
        """The JSON document of `eval run --json`."""
        return {
            "dataset": self.dataset,
            "documents": self.documents,
            "queries": self.queries,
            "excluded": {"no_relevant": self.no_relevant},
            "embedder": self.embedder,
            "pipelines": [pipeline.as_json() for pipeline in self.pipelines],
            "comparisons": [comparison_json(comparison) for comparison in self.comparisons],
            "warnings": list(self.warnings),
        }

    def all_warnings(self) -> list[str]:
        """Warnings about parts of pipelines that did not work, followed by `warnings`."""
        missing = [
            f"{pipeline.name} ran {lost.queries:,} of {self.queries:,} queries without {lost.part} ({lost.reason})"
            for pipeline in self.pipelines
            for lost in pipeline.degraded_parts
        ]
        return [*missing, *self.warnings]

    def blocks(self) -> list[Block]:
        """A table of the figures, best values marked with *, and a sentence for each comparison."""
        heading = f"{self.dataset}: {self.documents:,} documents, {self.queries:,} queries"
        if self.no_relevant:
            heading += f" ({self.no_relevant:,} more have no relevant document and are left out)"
        indexed = f" indexed in {self.pipelines[0].index_s:.1f} s" if self.pipelines[0].index_s else ""
        heading += f",{indexed} with {self.embedder or 'no vectors'}"
        compared = "\n".join(sentence(comparison, self.queries) for comparison in self.comparisons)
        warnings = "\n".join(f"warning: {warning}" for warning in self.all_warnings())
        restraint = "\n".join(
            restraint_sentence(pipeline.name, pipeline.restraint) for pipeline in self.pipelines if pipeline.restraint
        )
        further = {pipeline.name: pipeline.further for pipeline in self.pipelines if pipeline.further}
        more: list[Block] = [further_table(further), channel_lines(further)] if further else []
        budgets = "\n".join(filter(None, (pipeline.budget_sentence() for pipeline in self.pipelines)))
        return [heading, _table(self.pipelines), budgets, *more, restraint, compared, warnings]

    def as_text(self) -> str:
        """The report as plain text for a file or a pipe."""
        return plain_text(self.blocks())


def restraint_sentence(name: str, restraint: AbstentionScores) -> str:
    """A pipeline's abstention in words."""
    told = []
    if restraint.warned is not None:
        text = f"warns in {restraint.warned:.0%} of {restraint.unanswerable:,} unanswerable queries and "
        told.append(f"{text}in {restraint.false_alarms:.0%} of the others")
    if restraint.misled is not None:
        told.append(f"puts a hard negative first in {restraint.misled:.0%} of {restraint.tempted:,} queries with one")
    return f"{name} {'; it '.join(told)}"


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The entry of `comparisons`."""
    return dict(round_figures(asdict(comparison)))


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
    return Table(rows)


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
