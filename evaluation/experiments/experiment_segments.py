"""Groups the queries of an experiment by intent, complexity and folder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from speckit_memory.evaluation.experiments.experiment_agreement import agreements
from speckit_memory.evaluation.experiments.experiment_costs import overhead
from speckit_memory.evaluation.experiments.experiment_evidence import (
    Judgements,
    MetricEvidence,
    answered_with,
    metrics_with_evidence,
)
from speckit_memory.evaluation.experiments.experiment_quality import qualities, questions_of
from speckit_memory.evaluation.experiments.experiment_report import (
    QualityDifference,
    QueryContrast,
    QuerySegment,
    SegmentKind,
)
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS
from speckit_memory.memory.store.evaluation.records import RecordedPair

_KINDS: tuple[SegmentKind, ...] = ("intent", "complexity", "folder")
_ENOUGH = 10
"""Below this number of queries a segment has no figures: they would describe the queries rather than the pipelines."""

_Row = tuple[RecordedPair, QueryContrast | None]


def segments(
    pairs: Sequence[RecordedPair], contrasts: Sequence[QueryContrast], judgements: Judgements, *, variants: int
) -> tuple[QuerySegment, ...]:
    """The answered `pairs` in groups, the largest of each kind first.

    Where ten differing queries of a segment are judged, its quality is compared on the first metric.

    Args:
        pairs: The pairs of answers.
        contrasts: The same pairs compared; empty where no rankings are compared.
        judgements: Grades by query and memory.
        variants: Number of variants; the segments of all variants are one family.
    """
    # `contrasts` has an entry per pair, or none at all where rankings are not compared
    rows = list(zip_longest(pairs, contrasts))
    groups = [(kind, value, group) for kind in _KINDS for value, group in _groups(rows, kind)]
    judged = [_judged(group, judgements) if judgements else [] for *_, group in groups]
    # a group has evidence on one metric at most: the comparisons come in the order of the groups with evidence
    tested = iter(qualities([one for found in judged for one in found], variants=variants))
    return tuple(
        _segment(kind, value, group, next(tested) if evidence else None)
        for (kind, value, group), evidence in zip(groups, judged, strict=True)
    )


def _groups(rows: Sequence[_Row], kind: SegmentKind) -> list[tuple[str, list[_Row]]]:
    groups: dict[str, list[_Row]] = {}
    for pair, found in rows:
        if value := str(getattr(pair.query, kind)):
            groups.setdefault(value, []).append((pair, found))
    return sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))


def _judged(group: Sequence[_Row], judgements: Judgements) -> list[MetricEvidence]:
    """The differences on the first metric; empty where too few queries are judged."""
    differing, alike = questions_of([found for _, found in group if found])
    evidence = metrics_with_evidence(answered_with(differing, judgements), "judgements", alike=alike)
    return [one for one in evidence if one.metric == COMPARED_METRICS[0]]


def _segment(kind: SegmentKind, value: str, group: Sequence[_Row], quality: QualityDifference | None) -> QuerySegment:
    if len(group) < _ENOUGH:
        return QuerySegment(kind, value, len(group), None, None, None)
    found = [contrast.agreement for _, contrast in group if contrast]
    agreed = agreements(found) if found else None
    return QuerySegment(kind, value, len(group), agreed, overhead([pair for pair, _ in group]), quality)
