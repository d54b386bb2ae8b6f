"""The report of a comparison, as JSON, as text, and as a stored record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from speckit_memory.evaluation.comparing.contrast import MAIN, ContrastSegment, DifferingQuery, PipelineContrast
from speckit_memory.evaluation.running.report import comparison_json, sentence
from speckit_memory.evaluation.statistics.comparison import Comparison, Values
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.tables import Block, Table, in_line, plain_text
from speckit_memory.memory.store.evaluation.records import EvaluationFigure, StoredEvaluation


@dataclass(frozen=True, slots=True)
class CompareReport:
    """Pipelines compared with a control over the same queries. The first of `pipelines`, as in `eval run`, is the
    control.

    `queries` are the ids of the scored queries. `noise` compares the control with itself; None for rankings from files.
    `values` are stored with the report, so that a later evaluation can be paired with this one.
    """

    kind: str
    at: float
    dataset: str
    digest: str
    documents: int | None
    queries: tuple[str, ...]
    no_relevant: int
    pipelines: tuple[Mapping[str, Any], ...]
    comparisons: tuple[Comparison, ...]
    noise: PipelineContrast | None
    contrasts: tuple[PipelineContrast, ...]
    values: Mapping[str, Values]
    warnings: tuple[str, ...] = ()
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Latency of each query by pipeline (ms), stored with the report as evidence for flags."""
    keeping: str = ""
    """Where the report is kept, or why it is not kept; "" until that is decided."""
    is_kept: bool = True
    """Whether the report is stored, so that its id can be cited."""

    @property
    def id(self) -> str:
        """12 hex digits that identify pipelines, queries and documents; cited as evidence."""
        names = [str(pipeline["hash"] or pipeline["name"]) for pipeline in self.pipelines]
        said = ":".join((self.kind, self.digest, ",".join(self.queries), *names))
        return sha256(said.encode()).hexdigest()[:12]

    @property
    def steady(self) -> bool:
        """Whether the control answered alike both times, so that every difference is due to the pipelines."""
        return self.noise is None or not (self.noise.ordering_differences or self.noise.score_differences)

    def as_json(self, *, texts: bool = True) -> dict[str, Any]:
        """The JSON document of `eval compare --json`; without `texts` no query is quoted."""
        return {
            "id": self.id if self.is_kept else None,
            "kind": self.kind,
            "dataset": self.dataset,
            "digest": self.digest,
            "documents": self.documents,
            "queries": len(self.queries),
            "excluded": {"no_relevant": self.no_relevant},
            "pipelines": [dict(pipeline) for pipeline in self.pipelines],
            "comparisons": [comparison_json(comparison) for comparison in self.comparisons],
            "noise_floor": self.noise and self.noise.as_json(texts=texts),
            "contrasts": [one.as_json(texts=texts) for one in self.contrasts],
            "warnings": list(self.all_warnings()),
            "keeping": self.keeping,
        }

    def stored(self, further: Mapping[str, Any] | None = None) -> StoredEvaluation:
        """The record for the evaluation database: the report without texts, and each query's values by pipeline."""
        per_query: dict[str, Any] = {
            "queries": list(self.queries),
            "values": {
                name: {metric: column.tolist() for metric, column in values.items()}
                for name, values in self.values.items()
            },
        }
        if self.times:
            per_query["ms"] = {name: list(times) for name, times in self.times.items()}
        document = {**self.as_json(texts=False), **(further or {}), "per_query": per_query}
        return StoredEvaluation(self.id, self.kind, self.at, self.dataset, self.digest, document)

    def snapshots(self) -> Iterator[EvaluationFigure]:
        """The metrics of each pipeline, as recorded for `eval history`."""
        for pipeline in self.pipelines:
            for metric, value in pipeline["metrics"].items():
                yield EvaluationFigure(pipeline["hash"] or pipeline["name"], metric, value, len(self.queries))

    def all_warnings(self) -> Iterator[str]:
        """Warnings about the limits of the figures."""
        yield from self.warnings
        if self.noise is not None and not self.steady:
            differing = self.noise.ordering_differences + self.noise.score_differences
            yield f"the control answered {differing:,} of {self.noise.queries:,} queries differently the second time"

    def blocks(self) -> list[Block]:
        """The metrics, a sentence for each comparison, and how each pipeline differs from the control."""
        heading = f"{self.dataset}: {len(self.queries):,} queries"
        if self.documents is not None:
            heading += f" over {self.documents:,} documents"
        if self.no_relevant:
            heading += f" ({self.no_relevant:,} more have no relevant document and are left out)"
        heading += f"; the control is {self.pipelines[0]['name']}"
        verdicts = "\n".join(sentence(comparison, len(self.queries)) for comparison in self.comparisons)
        blocks: list[Block] = [heading, _figures(self.pipelines), verdicts]
        if self.noise is not None:
            blocks.append(_noise(self.noise))
        for one in self.contrasts:
            blocks += _contrast(one)
        warnings = [f"warning: {warning}" for warning in self.all_warnings()]
        return [*blocks, "\n".join(warnings), self.keeping]

    def as_text(self) -> str:
        """The report as plain text for a file or a pipe."""
        return plain_text(self.blocks())


def _figures(pipelines: Sequence[Mapping[str, Any]]) -> Table:
    timed = all("latency_ms" in pipeline for pipeline in pipelines)
    rows = [["pipeline", *METRICS, *(["p50 ms", "p95 ms", "degraded"] if timed else [])]]
    for pipeline in pipelines:
        cells = [pipeline["name"], *(f"{pipeline['metrics'][metric]:.4f}" for metric in METRICS)]
        if timed:
            times = pipeline["latency_ms"]
            cells += [f"{times['p50']:.1f}", f"{times['p95']:.1f}", str(pipeline["degraded_queries"])]
        rows.append(cells)
    return Table(rows)


def _noise(noise: PipelineContrast) -> str:
    if noise.ordering_differences or noise.score_differences:
        text = f"noise floor: the control against itself orders {noise.ordering_differences:,} of {noise.queries:,} "
        text += f"queries differently and scores {noise.score_differences:,} more differently"
    else:
        text = f"noise floor: the control answered all {noise.queries:,} queries alike both times"
    if noise.overhead_ms is not None:
        text += f"; its time differs from itself by {noise.overhead_ms[0]:+.1f} ms (median)"
    return text


def _contrast(one: PipelineContrast) -> Iterator[Block]:
    if not one.ordering_differences:
        scores = f"; {one.score_differences:,} have other scores" if one.score_differences else ""
        yield f"{one.variant} orders all {one.queries:,} queries as {one.control} does: no ordering difference{scores}"
        return
    tau = "-" if one.kendall_tau_b is None else f"{one.kendall_tau_b:.3f}"
    text = (
        f"{one.variant} orders {one.ordering_differences:,} of {one.queries:,} queries differently from {one.control}: "
    )
    text += f"overlap@10 {one.overlap_10:.3f}, Kendall tau-b {tau}, rank-biased overlap {one.rbo:.3f}"
    if one.overhead_ms is not None:
        text += f"; it takes {one.overhead_ms[0]:+.1f} ms (median), {one.overhead_ms[1]:+.1f} ms (p95)"
    yield text
    rows = [["queries that it", "wins", "ties", "loses"]]
    rows += [[metric, str(t.wins), str(t.ties), str(t.losses)] for metric, t in one.tallies.items()]
    yield Table(rows)
    if one.segments:
        yield _segments(one.segments)
    yield f"queries that {one.variant} answers least like {one.control}:"
    yield "\n".join(line for differing in one.differ_most for line in _differing(differing))


def _segments(segments: Sequence[ContrastSegment]) -> Table:
    rows = [[f"{MAIN} by segment, not tested", "queries", "delta", "95 % interval", "wins", "ties", "losses"]]
    for one in segments:
        interval = "too few" if one.ci95 is None else f"{one.ci95[0]:+.4f} to {one.ci95[1]:+.4f}"
        counts = [str(one.tally.wins), str(one.tally.ties), str(one.tally.losses)]
        rows.append([f"{one.by} {one.name}", str(one.queries), f"{one.delta:+.4f}", interval, *counts])
    return Table(rows)


def _differing(one: DifferingQuery) -> Iterator[str]:
    said = f" {in_line(one.text)}" if one.text else ""
    parted = f", differ from {one.parted_at} on" if one.parted_at else ""
    yield f"{one.query}:{said} ({MAIN} {one.delta:+.3f}, first difference at rank {one.first_difference}{parted})"
    yield f"  control: {', '.join(one.control) or 'nothing'}"
    yield f"  variant: {', '.join(one.variant) or 'nothing'}"
