"""Evidence on quality from judgements and uses of queries that two pipelines answered, metric by metric."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import Evidence
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS
from speckit_memory.evaluation.statistics.distinct_queries import lot
from speckit_memory.evaluation.statistics.metrics import evaluate, relevant
from speckit_memory.memory.store.evaluation.records import RecordedPair
from speckit_memory.pipeline.ports import Column

Judgements = Mapping[str, Mapping[int, float]]
"""Grade by query id and memory id; above 0 is relevant."""

FEWEST = 10
"""Minimum number of differing queries with evidence for a figure on quality; a smaller sample is not informative."""

_DEPTH = {"nDCG@10": 10, "MRR@5": 5, "Recall@20": 20, "Hit@1": 1}
"""Number of ranks that each metric considers."""


OPEN = 0.1
"""Largest share of unjudged questions among those that came first by lot; the worst case is assumed for them."""


class AnsweredQuery(NamedTuple):
    """One question: the keys or ids of both answers, best first, and the known grades.

    `lot` is its place in the order of judging.
    """

    lot: bytes
    control: Sequence[Hashable]
    variant: Sequence[Hashable]
    known: Mapping[Any, float]


class MetricEvidence(NamedTuple):
    """One metric over all questions that both pipelines answered.

    `column` holds variant minus control for the questions that differ on the metric and have evidence. `unknown` more
    differ without usable evidence; `alike` do not differ on the metric, so their difference is 0. `skipped` of the
    unknown came by lot among those of the column.
    """

    evidence: Evidence
    metric: str
    column: Column
    alike: int
    unknown: int
    skipped: int = 0

    def bounds(self) -> tuple[Column, Column]:
        """The column with the worst, and with the best, possible values for the skipped questions."""
        # metrics are in [0, 1], so a difference is in [-1, 1]
        worst, best = (np.append(self.column, np.full(self.skipped, end)) for end in (-1.0, 1.0))
        return worst, best

    def times(self, factor: float) -> MetricEvidence:
        """The evidence expected from `factor` times as many similar queries."""
        # np.resize repeats the column cyclically
        column = np.resize(self.column, round(factor * len(self.column)))
        alike, unknown, skipped = (round(factor * count) for count in (self.alike, self.unknown, self.skipped))
        return self._replace(column=column, alike=alike, unknown=unknown, skipped=skipped)


def answered_with(questions: Sequence[Sequence[RecordedPair]], judgements: Judgements) -> list[AnsweredQuery]:
    """The first answers to each question, with its known grades from every time it was asked."""
    return [
        AnsweredQuery(
            lot(first.query.id, readable=bool(first.query.question)),
            first.control.memories,
            first.variant.answer.memories,
            # grades from every repetition of the question count
            dict(chain.from_iterable(judgements.get(pair.query.id, {}).items() for pair in (first, *again)))
            if judgements
            else {},
        )
        for first, *again in questions
    ]


def metrics_with_evidence(
    answers: Sequence[AnsweredQuery], evidence: Evidence, *, alike: int = 0, metrics: Sequence[str] = COMPARED_METRICS
) -> list[MetricEvidence]:
    """The metrics on which at least `FEWEST` differing questions have evidence, and those on which nothing differs.

    Judgements count only for the questions that come first by lot, because questions chosen by a person represent no
    others. They count where every document that can affect the metric is judged: for nDCG@10 the first ten whose rank
    differs, for MRR@5 the first five down to the first relevant one of each answer, for Recall@20 those that only one
    answer has, for Hit@1 the first of each answer. Uses count for queries of which something was used.

    Args:
        answers: The questions with different answers.
        evidence: "judgements" or "uses".
        alike: Number of further questions that both answered with the same lists.
        metrics: The metrics to measure.

    Returns:
        The metrics with evidence; empty if all it could say is that some, not all, metrics differ nowhere.
    """
    every = [_of_metric(answers, metric, evidence, alike) for metric in metrics]
    found = [one for one in every if len(one.column) >= FEWEST or not len(one.column) + one.unknown]
    # a metric that differs nowhere is reported only with one that has evidence
    if any(len(one.column) for one in found):
        return found
    return found if answers and evidence == "judgements" and len(found) == len(every) else []


def told_apart(answers: Sequence[AnsweredQuery], metric: str = COMPARED_METRICS[0]) -> int:
    """Counts the questions that differ on a metric and have a judgement of every document that affects it.

    Only judgements in the order of lots count; from `FEWEST` questions on there is a figure.
    """
    return len(_of_metric(answers, metric, "judgements", 0).column)


def _of_metric(answers: Sequence[AnsweredQuery], metric: str, evidence: Evidence, alike: int) -> MetricEvidence:
    differing = [one for one in answers if _differs(one, metric)]
    # in the order of lots, which does not depend on the answers
    drawn = [(one, _complete(one, metric, evidence)) for one in sorted(differing, key=lambda one: one.lot)]
    first = drawn if evidence == "uses" else drawn[: _reach([complete for _, complete in drawn])]
    known = [one for one, complete in first if complete]
    column = np.zeros(len(known))
    told = [place for place, one in enumerate(known) if relevant(one.known)]  # without a relevant memory, neither gains
    if told:
        grades = [known[place].known for place in told]
        control = evaluate([known[place].control for place in told], grades)[metric]
        column[told] = evaluate([known[place].variant for place in told], grades)[metric] - control
    # a question whose answers are equal down to the depth of the metric counts as 0
    same = alike + len(answers) - len(differing)
    skipped = 0 if evidence == "uses" else len(first) - len(known)
    return MetricEvidence(evidence, metric, column, same, len(differing) - len(known), skipped)


def _reach(complete: Sequence[bool]) -> int:
    """The number of questions that count, in the order of lots: up to the last judged one with at most a tenth
    unjudged.

    The bets hold at the end of every such prefix simultaneously, so it may be chosen by the data.
    """
    # complete: (n,) bool in the order of lots; counts[i] is the number of judged questions among the first i + 1
    counts = np.cumsum(complete)
    # ends: lengths - 1 of the prefixes that end with a judged question and of which at most `OPEN` is unjudged
    ends = np.flatnonzero(np.array(complete, bool) & (counts >= (1 - OPEN) * np.arange(1, len(complete) + 1)))
    return int(ends[-1]) + 1 if len(ends) else 0


def _differs(one: AnsweredQuery, metric: str) -> bool:
    """Whether the answers can differ on a metric under some judgements."""
    control, variant = one.control[: _DEPTH[metric]], one.variant[: _DEPTH[metric]]
    return {*control} != {*variant} if metric == "Recall@20" else control != variant


def _told_apart(one: AnsweredQuery, metric: str) -> set[Hashable]:
    """The documents whose judgements decide how two answers differ on a metric."""
    control, variant = one.control[: _DEPTH[metric]], one.variant[: _DEPTH[metric]]
    # a document among the first 20 of both adds the same to either recall
    if metric == "Recall@20":
        return {*control} ^ {*variant}
    # a document at the same rank in both cancels in the difference of the gains
    if metric == "nDCG@10":
        before, after = ({key: rank for rank, key in enumerate(keys)} for keys in (control, variant))
        return {key for key in {**before, **after} if before.get(key) != after.get(key)}
    if metric == "MRR@5":
        return {*_to_first_relevant(control, one.known), *_to_first_relevant(variant, one.known)}
    return {*control, *variant}


def _to_first_relevant(keys: Sequence[Hashable], known: Mapping[Any, float]) -> Sequence[Hashable]:
    """The keys that decide a reciprocal rank: down to the first one known to be relevant."""
    return keys[: next((rank for rank, key in enumerate(keys, start=1) if known.get(key, 0.0) > 0), len(keys))]


def _complete(one: AnsweredQuery, metric: str, evidence: Evidence) -> bool:
    if evidence == "uses" or not one.known:  # fast path: most queries have no judgements
        return relevant(one.known) > 0
    return _told_apart(one, metric) <= set(one.known)
