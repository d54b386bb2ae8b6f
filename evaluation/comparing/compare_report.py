"""The report of a comparison with its stored record, and one verdict on each variant over several datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar

from speckit_memory.evaluation.comparing.contrast import PipelineContrast
from speckit_memory.evaluation.running.report import dataset_title, sentence
from speckit_memory.evaluation.statistics.comparison import Comparison, Values, Verdict, compare
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
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
    ENTRIES: ClassVar = {
        "at": "",
        "queries": "",
        "no_relevant": "excluded.no_relevant",
        "noise": "noise_floor",
        "values": "",
        "warnings": "",
        "is_kept": "",
        "times": "",
        "cited": "id",
        "asked": "queries",
        "all_warnings": "warnings",
    }

    @property
    def id(self) -> str:
        """12 hex digits that identify pipelines, queries and documents; cited as evidence."""
        names = [str(pipeline["hash"] or pipeline["name"]) for pipeline in self.pipelines]
        said = ":".join((self.kind, self.digest, ",".join(self.queries), *names))
        return sha256(said.encode()).hexdigest()[:12]

    @property
    def cited(self) -> str | None:
        """The id if the report is stored."""
        return self.id if self.is_kept else None

    @property
    def asked(self) -> int:
        """The number of scored queries."""
        return len(self.queries)

    @property
    def steady(self) -> bool:
        """Whether the control answered alike both times, so that every difference is due to the pipelines."""
        return self.noise is None or not (self.noise.ordering_differences or self.noise.score_differences)

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
        document = {**as_document(self), **(further or {}), "per_query": per_query}
        for one in (*document["contrasts"], *filter(None, [document["noise_floor"]])):
            for differing in one["differ_most"]:
                del differing["text"]
        return StoredEvaluation(self.id, self.kind, self.at, self.dataset, self.digest, document)

    def snapshots(self) -> Iterator[EvaluationFigure]:
        """The metrics of each pipeline, as recorded for `eval history`."""
        for pipeline in self.pipelines:
            for metric, value in pipeline["metrics"].items():
                yield EvaluationFigure(pipeline["hash"] or pipeline["name"], metric, value, len(self.queries))

    @property
    def all_warnings(self) -> list[str]:
        """Warnings about the limits of the figures."""
        if self.noise is None or self.steady:
            return list(self.warnings)
        differing = self.noise.ordering_differences + self.noise.score_differences
        noise = f"the control answered {differing:,} of {self.noise.queries:,} queries differently the second time"
        return [*self.warnings, noise]

    def as_report(self) -> Report:
        """The metrics, a sentence for each comparison, and how each pipeline differs from the control."""
        return Report(
            dataset_title(self.dataset, self.documents, len(self.queries), self.no_relevant),
            about=f"the control is {self.pipelines[0]['name']}",
            verdict="\n".join(sentence(comparison, len(self.queries)) for comparison in self.comparisons),
            tables=[_figures(self.pipelines)],
            notes=[
                *([_noise(self.noise)] if self.noise else []),
                *map(_contrast, self.contrasts),
                *warnings_of(self.all_warnings),
                *filter(None, [self.keeping]),
            ],
            data=as_document(self),
        )


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


def _contrast(one: PipelineContrast) -> str:
    if not one.ordering_differences:
        scores = f"; {one.score_differences:,} have other scores" if one.score_differences else ""
        return f"{one.variant} orders all {one.queries:,} queries as {one.control} does: no ordering difference{scores}"
    tau = "-" if one.kendall_tau_b is None else f"{one.kendall_tau_b:.3f}"
    text = (
        f"{one.variant} orders {one.ordering_differences:,} of {one.queries:,} queries differently from {one.control}: "
        f"overlap@10 {one.overlap_10:.3f}, Kendall tau-b {tau}, rank-biased overlap {one.rbo:.3f}"
    )
    if one.overhead_ms is not None:
        text += f"; it takes {one.overhead_ms[0]:+.1f} ms (median), {one.overhead_ms[1]:+.1f} ms (p95)"
    tallies = ", ".join(f"{t.wins} / {t.ties} / {t.losses} on {metric}" for metric, t in one.tallies.items())
    return f"{text}; it wins, ties and loses {tallies}"


@dataclass(frozen=True, slots=True)
class DatasetVerdict:
    """The verdict on one dataset."""

    dataset: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Overall:
    """A variant against the control: the verdict on each dataset, corrected for the tests on all of them."""

    control: str
    variant: str
    sets: tuple[DatasetVerdict, ...]
    ENTRIES: ClassVar = {
        "control": "a",
        "variant": "b",
        "sets": "datasets",
        "verdict": "verdict",
        "sentence": "sentence",
    }

    @property
    def verdict(self) -> Verdict:
        """Better if better on some dataset and worse on none, and vice versa; the same if the same on all; else
        undecided."""
        return _together([one.verdict for one in self.sets])

    @property
    def sentence(self) -> str:
        """The verdict in words, followed by the verdicts on each dataset."""
        each = ", ".join(f"{one.verdict} on {one.dataset}" for one in self.sets)
        if self.verdict == "undecided":
            return f"over {len(self.sets)} datasets it is undecided whether {self.variant} beats {self.control}: {each}"
        than = f"the same as {self.control}" if self.verdict == "same" else f"{self.verdict} than {self.control}"
        return f"over {len(self.sets)} datasets {self.variant} is {than}: {each}"


def overall(reports: Sequence[CompareReport]) -> list[Overall]:
    """The overall verdict on each variant; each report compares the same pipelines on a different dataset."""
    # Bonferroni over the comparisons of all datasets
    family = sum(len(report.comparisons) for report in reports)
    # (control, variant) to place of the dataset to its verdicts, one per metric.
    told: dict[tuple[str, str], dict[int, list[Verdict]]] = {}
    for place, report in enumerate(reports):
        pairs = list(dict.fromkeys((one.a, one.b) for one in report.comparisons))
        for one in compare(report.values, pairs, family=family):
            told.setdefault((one.a, one.b), {}).setdefault(place, []).append(one.verdict)
    return [
        Overall(
            *named, tuple(DatasetVerdict(reports[place].dataset, _together(found)) for place, found in by_place.items())
        )
        for named, by_place in told.items()
    ]


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for several: the only direction found, as long as none contradicts it; the same only if all are."""
    decided = {one for one in verdicts if one in ("better", "worse")}
    if len(decided) == 1:
        return decided.pop()
    return "same" if set(verdicts) == {"same"} else "undecided"
