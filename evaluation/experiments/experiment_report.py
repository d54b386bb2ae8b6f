"""The figures of a shadow report as values: two pipelines that answered the same live queries.

`speckit_memory.evaluation.experiments.experiment.judge_experiment` makes them. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from speckit_memory.evaluation.experiments.implicit_feedback import NO_COUNTS, FeedbackCounts
from speckit_memory.evaluation.experiments.interleaving import Duels
from speckit_memory.evaluation.running.report import Latency
from speckit_memory.evaluation.statistics.agreement import Agreement
from speckit_memory.evaluation.statistics.comparison import Verdict
from speckit_memory.evaluation.statistics.label_free import LabelFree
from speckit_memory.memory.store.evaluation.records import Mode, PipelineRecord, RecordedPair

LatencyVerdict = Literal["faster", "slower", "undecided"]
ExperimentVerdict = Literal["better", "worse", "same", "undecided", "failed"]
SegmentKind = Literal["intent", "complexity", "folder"]
Evidence = Literal["judgements", "uses"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over `n` queries with its 95 % interval.

    The interval of live queries is anytime-valid; otherwise it is a bootstrap interval, None for one query.
    """

    mean: float
    ci95: tuple[float, float] | None
    n: int


@dataclass(frozen=True, slots=True)
class Agreements:
    """How far the rankings of many queries agree. An estimate over no query is None.

    `only_scores` counts queries with the same order and different scores; `mean_shift` is the mean absolute rank shift
    of common rows.
    """

    queries: int
    ordering_differences: int
    only_scores: int
    kendall_tau_b: Estimate | None
    overlap_5: Estimate | None
    overlap_10: Estimate | None
    rbo: Estimate | None
    mean_shift: float | None
    ENTRIES: ClassVar = {"only_scores": "only_scores_differ", "overlap_5": "overlap@5", "overlap_10": "overlap@10"}


@dataclass(frozen=True, slots=True)
class CostDifference:
    """The cost of the variant.

    `overhead` is the total time of the variant minus that of the control, query by query, each as if it ran alone.
    `spent` is the additional time of running it with the control, without shared steps; `served_overhead` is the part
    of that time that the caller waited for. `median_ci95` is the anytime-valid interval of the median overhead.
    `over_budget` counts the queries that took longer than `budget_ms`.
    """

    overhead: Latency | None
    median_ci95: tuple[float, float] | None
    verdict: LatencyVerdict
    spent: Latency | None
    served_overhead: Latency | None
    budget_ms: float
    over_budget: int
    ENTRIES: ClassVar = {
        "overhead": "overhead_ms",
        "median_ci95": "latency.median_ci95",
        "verdict": "latency.verdict",
        "spent": "spent_ms",
        "served_overhead": "served_overhead_ms",
        "budget_ms": "latency.budget_ms",
        "over_budget": "latency.over_budget",
        "budget_broken": "latency.budget_broken",
    }

    @property
    def budget_broken(self) -> bool:
        """Whether the p95 of `spent` is above the budget."""
        return self.spent is not None and self.spent.p95 > self.budget_ms


@dataclass(frozen=True, slots=True)
class StepFigures:
    """The time of one step in either pipeline, None where a pipeline lacks it; `shared`: queries on which it ran once
    for both."""

    stage: str
    step: str
    control: Latency | None
    variant: Latency | None
    shared: int
    ENTRIES: ClassVar = {"control": "control_ms", "variant": "variant_ms"}


@dataclass(frozen=True, slots=True)
class QualityDifference:
    """Variant against control on one metric, over the queries that have evidence.

    Judgements grade every memory of both answers. Uses exist only for memories that the control served, so they may
    show the variant to be better and never worse. `delta` is the mean of the variant minus that of the control over all
    queries that both answered: `queries` differ and have evidence; `alike` do not differ on the metric and count as 0;
    those `waiting` differ without evidence and are taken to resemble the others. `ci95` and `p` are anytime-valid
    (`sequential`); `p_adjusted` is p times the number of comparisons of all variants of the report, and `ci95` holds
    simultaneously with the intervals of these. `queries_needed` counts all queries that both answer, including those
    alike.
    """

    metric: str
    evidence: Evidence
    queries: int
    alike: int
    waiting: int
    delta: float
    ci95: tuple[float, float]
    p: float
    p_adjusted: float
    verdict: Verdict
    queries_needed: int | None
    minimum_detectable_effect: float | None


@dataclass(frozen=True, slots=True)
class QuerySegment:
    """The queries of one intent, complexity or folder. Small segments have counts and no figures."""

    by: SegmentKind
    value: str
    queries: int
    agreement: Agreements | None
    overhead: Latency | None
    quality: QualityDifference | None
    ENTRIES: ClassVar = {"agreement": "", "overhead": "overhead_ms", "too_few": "too_few", "headline": "."}

    @property
    def headline(self) -> dict[str, float | None]:
        """The key figures of the agreement."""
        return headline_figures(self.agreement)

    @property
    def too_few(self) -> bool:
        """Whether there are too few queries for any figure."""
        return self.agreement is None and self.overhead is None


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The control compared with itself: every difference is noise. `overhead` is the second run minus the first."""

    queries: int
    ordering_differences: int
    overhead: Latency | None
    ENTRIES: ClassVar = {"overhead": "overhead_ms"}


@dataclass(frozen=True, slots=True)
class QueryContrast:
    """A query with the answers of both pipelines and their agreement."""

    pair: RecordedPair
    agreement: Agreement[int]


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """A control and a variant over all queries that both were asked.

    `queries` were given to the variant. Both answered `compared` of them, which are `questions` distinct questions;
    verdicts rest on these, because a repeated question adds no evidence. The variant failed on `failed`, by `failures`
    ("kind in step": queries). `dropped` counts queries that it did not see, by reason; `pruned` more are no longer
    stored. `agreement` is None for a dark run, whose results are not stored, and for interleaved answers. The verdict
    is about the quality of the variant. It is undecided without evidence, unless nothing differs at all, and failed for
    a variant that answered nothing. `queries_needed` is the number of queries, including those alike, that would
    probably settle it. `duels` is None where no answers were interleaved, `noise` where the control never ran against
    itself. `differing`: the queries that differ most, the lowest rank-biased overlap first. `parted_at`: number of
    queries by the first step that differs. `keys` are readable names of memories.
    """

    id: str
    control: PipelineRecord
    variant: PipelineRecord
    flag: str
    mode: Mode
    first: float
    last: float
    queries: int
    compared: int
    questions: int
    failed: int
    failures: Mapping[str, int]
    dropped: Mapping[str, int]
    pruned: int
    agreement: Agreements | None
    cost: CostDifference
    steps: tuple[StepFigures, ...]
    quality: tuple[QualityDifference, ...]
    duels: Duels | None
    segments: tuple[QuerySegment, ...]
    noise: NoiseFloor | None
    differing: tuple[QueryContrast, ...]
    parted_at: Mapping[str, int]
    verdict: ExperimentVerdict
    sentence: str
    queries_needed: int | None
    keys: Mapping[int, str] = field(default_factory=dict)
    judged: int | None = None
    """Number of queries with judgements of every document that matters, None where nothing was judged."""
    label_free: tuple[LabelFree, ...] = ()
    """The largest difference that judgements can make, by metric; empty where no rankings were compared."""
    variants: int = 1
    """Number of variants judged together: the verdicts on all of them are one family."""
    texts: bool = True
    """Whether the text of any query was kept, so that a judge can read it."""
    feedback: FeedbackCounts = NO_COUNTS
    """What readers of the served answers showed without judging them."""
    basis: Mapping[str, int] = field(default_factory=dict)
    """Number of pairs by the state of the store they rest on, see `records.Basis`."""
    ENTRIES: ClassVar = {
        "flag": "variant.flag",
        "dropped": "dropped_by_reason",
        "cost": ".",
        "duels": "interleaving",
        "noise": "noise_floor",
        "differing": "",
        "judged": "judged_queries",
        "variants": "variants_judged",
        "texts": "",
        "feedback": "implicit_feedback",
        "keys": "",
        "lost": "dropped",
        "headline": ".",
        "differing_by": "differing_by",
        "contrasts": "differing",
    }

    @property
    def lost(self) -> int:
        """The number of queries that the variant did not see."""
        return sum(self.dropped.values())

    @property
    def headline(self) -> dict[str, float | None]:
        """The key figures of the agreement."""
        return headline_figures(self.agreement)

    @property
    def differing_by(self) -> str:
        """The figure that orders `differing`."""
        return "rbo"

    @property
    def contrasts(self) -> list[dict[str, Any]]:
        """The queries that differ most, with both answers."""
        return list(map(self._contrast, self.differing))

    def _contrast(self, contrast: QueryContrast) -> dict[str, Any]:
        pair, agreement = contrast.pair, contrast.agreement
        return {
            "query": pair.query.id,
            "intent": pair.query.intent,
            "complexity": pair.query.complexity,
            "parted_at": pair.variant.parted_at,
            "rbo": agreement.rbo,
            "overlap@10": agreement.overlap_10,
            "kendall_tau_b": agreement.kendall_tau_b,
            "first_difference": agreement.first_difference,
            "control": self._named(pair.control.memories, pair.control.scores),
            "variant": self._named(pair.variant.answer.memories, pair.variant.answer.scores),
        }

    def _named(self, memories: Sequence[int], scores: Sequence[float]) -> list[dict[str, Any]]:
        return [
            {"id": memory, "score": score} | ({"key": self.keys[memory]} if memory in self.keys else {})
            for memory, score in zip(memories, scores, strict=True)
        ]


def headline_figures(agreement: Agreements | None) -> dict[str, float | None]:
    """The four key figures of an agreement; None where rankings were not compared."""
    if agreement is None:
        return dict.fromkeys(("ordering_differences", "overlap@10", "kendall_tau_b", "rbo"))
    means = {"overlap@10": agreement.overlap_10, "kendall_tau_b": agreement.kendall_tau_b, "rbo": agreement.rbo}
    return {
        "ordering_differences": agreement.ordering_differences,
        **{name: estimate.mean if estimate else None for name, estimate in means.items()},
    }
