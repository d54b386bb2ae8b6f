"""Groups the queries of an experiment by intent, complexity and folder."""

from __future__ import annotations

from collections.abc import Sequence

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
    QueryContrast,
    QuerySegment,
    SegmentKind,
)
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS
from speckit_memory.memory.store.evaluation.records import RecordedPair
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
