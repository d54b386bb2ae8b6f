"""Judges an experiment: a control and a variant that answered the same live queries (features P4, P5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from speckit_memory.evaluation.experiments.experiment_evidence import (
    Judgements,
    MetricEvidence,
    answered_with,
    metrics_with_evidence,
    told_apart,
)
from speckit_memory.evaluation.experiments.experiment_figures import (
    agreement_columns,
    agreements,
    answered_pairs,
    contrasts,
    cost,
    most_different,
    noise_floor,
    overhead,
    step_figures,
)
from speckit_memory.evaluation.experiments.experiment_quality import known_of, qualities, questions_of
from speckit_memory.evaluation.experiments.experiment_report import (
    ExperimentReport,
    ExperimentVerdict,
    QualityDifference,
    QueryContrast,
    QuerySegment,
    SegmentKind,
)
from speckit_memory.evaluation.experiments.experiment_sentence import sentence
from speckit_memory.evaluation.experiments.implicit_feedback import NO_FEEDBACK, ImplicitFeedback, feedback_counts
from speckit_memory.evaluation.experiments.interleaving import Teams, judge_duels
from speckit_memory.evaluation.statistics.comparison import ALPHA, COMPARED_METRICS, MARGIN, Verdict
from speckit_memory.evaluation.statistics.distinct_queries import distinct
from speckit_memory.evaluation.statistics.label_free import LabelFree, label_free
from speckit_memory.memory.store.evaluation.records import ExperimentRecord, RecordedPair, UseRecord
from speckit_memory.pipeline.ports import Column

_KINDS: tuple[SegmentKind, ...] = ("intent", "complexity", "folder")
_ENOUGH = 10
"""Below this number of queries a segment has no figures: they would describe the queries rather than the pipelines."""


def segments(
    pairs: Sequence[RecordedPair],
    contrasts: Sequence[QueryContrast],
    agreed: Column | None,
    judgements: Judgements,
    *,
    variants: int,
) -> tuple[QuerySegment, ...]:
    """The answered `pairs` in groups, the largest of each kind first.

    Where ten differing queries of a segment are judged, its quality is compared on the first metric.

    Args:
        pairs: The pairs of answers.
        contrasts: The same pairs compared; empty where no rankings are compared.
        agreed: Their figures (`agreement_columns`); None where no rankings are compared.
        judgements: Grades by query and memory.
        variants: Number of variants; the segments of all variants are one family.
    """
    groups = [(kind, value, places) for kind in _KINDS for value, places in _groups(pairs, kind)]
    judged = [
        _judged([contrasts[place] for place in places], judgements) if judgements and contrasts else []
        for *_, places in groups
    ]
    tested = iter(qualities([one for found in judged for one in found], variants=variants))
    found = []
    for (kind, value, places), evidence in zip(groups, judged, strict=True):
        quality = next(tested) if evidence else None
        if len(places) < _ENOUGH:
            found.append(QuerySegment(kind, value, len(places), None, None, None))
            continue
        figures = None if agreed is None else agreements(agreed[:, places])
        added = overhead([pairs[place] for place in places])
        found.append(QuerySegment(kind, value, len(places), figures, added, quality))
    return tuple(found)


def _groups(pairs: Sequence[RecordedPair], kind: SegmentKind) -> list[tuple[str, list[int]]]:
    groups: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        if value := str(getattr(pair.query, kind)):
            groups.setdefault(value, []).append(place)
    return sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))


def _judged(group: Sequence[QueryContrast], judgements: Judgements) -> list[MetricEvidence]:
    """The differences on the first metric; empty where too few queries are judged."""
    differing, alike = questions_of(group)
    evidence = metrics_with_evidence(answered_with(differing, judgements), "judgements", alike=alike)
    return [one for one in evidence if one.metric == COMPARED_METRICS[0]]


FEWEST_FAILURES = 3
"""A variant that failed on all queries, at least this many, has the verdict "failed"."""
BUDGET_MS = 500.0
"""The default budget of a variant where the control's record has none (feature P10)."""


def judge_experiment(
    pairs: Sequence[RecordedPair],
    *,
    experiment: ExperimentRecord,
    judgements: Judgements | None = None,
    uses: Sequence[UseRecord] = (),
    teams: Teams | None = None,
    noise: Sequence[RecordedPair] = (),
    variants: int = 1,
    feedback: ImplicitFeedback = NO_FEEDBACK,
) -> ExperimentReport:
    """Judges one experiment by its pairs of answers.

    More pairs keep coming in, and a replayed log grows, so all verdicts are anytime-valid, simultaneously over all
    `variants`.

    Args:
        pairs: The pairs of answers.
        experiment: The pipelines, the control's budget, and the dropped queries.
        judgements: Grades by query and memory.
        uses: Uses of served memories.
        teams: The pipeline that contributed each memory of interleaved answers.
        noise: Pairs in which the same control answered twice.
        variants: Number of variants that the verdicts are corrected for.
        feedback: What readers showed without judging: rephrased questions, memories opened and not cited.
    """
    both = answered_pairs(pairs)
    ranked = experiment.mode == "shadow"  # a dark run keeps no results, and interleaved answers are not the control's
    compared = contrasts(both) if ranked else []
    agreed = agreement_columns(compared) if ranked else None
    differing = [one for one in compared if one.agreement.ordering_difference]
    apart, alike = questions = questions_of(compared)
    evidence = known_of(questions, judgements or {}, uses)
    quality = qualities(evidence, variants=variants)
    duels = judge_duels(teams or {}, uses, variants=variants, feedback=feedback)
    # Bonferroni over the variants and metrics of the report
    alpha = ALPHA / (variants * len(COMPARED_METRICS))
    bounds = label_free(apart, alike, alpha=alpha) if compared else ()
    verdict: ExperimentVerdict
    verdict, needed = _verdict(bounds, quality)
    if bounds and not quality and verdict == "undecided":
        needed = bounds[0].queries_needed
    # interleaved answers have no ranking of the control, so duels decide
    if duels:
        verdict, needed = duels.verdict, duels.queries_needed
    failures = Counter(failure for pair in pairs if (failure := pair.variant.answer.failure))
    if failures.total() == len(pairs) >= FEWEST_FAILURES:
        verdict, needed = "failed", None
    report = ExperimentReport(
        id=experiment.id,
        control=experiment.control,
        variant=experiment.variant,
        flag=experiment.flag,
        mode=experiment.mode,
        first=experiment.first,
        last=experiment.last,
        queries=len(pairs),
        compared=len(both),
        questions=len(apart) + alike if ranked else len(distinct(both)),
        failed=failures.total(),
        failures=dict(failures.most_common()),
        dropped=dict(experiment.dropped),
        pruned=experiment.pruned,
        agreement=None if agreed is None else agreements(agreed),
        cost=cost(pairs, budget_ms=BUDGET_MS if experiment.control.budget_ms is None else experiment.control.budget_ms),
        steps=step_figures(both),
        quality=quality,
        duels=duels,
        feedback=feedback_counts(feedback, teams or {}),
        segments=segments(both, compared, agreed, judgements or {}, variants=variants),
        noise=noise_floor(noise),
        differing=most_different(differing),
        parted_at=dict(Counter(step for one in differing if (step := one.pair.variant.parted_at)).most_common()),
        verdict=verdict,
        sentence="",
        queries_needed=needed,
        judged=told_apart(answered_with(apart, judgements)) if judgements else None,
        label_free=bounds,
        variants=variants,
        texts=any(pair.query.question for pair in both),
        basis=dict(Counter(pair.basis for pair in pairs).most_common()),
    )
    return replace(report, sentence=sentence(report))


def _verdict(bounds: Sequence[LabelFree], quality: Sequence[QualityDifference]) -> tuple[Verdict, int | None]:
    """The verdict on quality; when undecided, also the number of queries needed by the judged metrics."""
    # even the least favourable judgements could not make a difference of interest
    if bounds and all(one.bound <= MARGIN for one in bounds):
        return "same", None
    verdicts = {one.verdict for one in quality}
    # metrics that contradict each other leave the verdict undecided
    decided = verdicts & {"better", "worse"}
    if len(decided) == 1:
        return decided.pop(), None
    if verdicts == {"same"}:
        return "same", None
    return "undecided", min((one.queries_needed for one in quality if one.queries_needed), default=None)
