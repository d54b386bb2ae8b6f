"""What judgements and uses say of queries that two pipelines answered, metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from speckit_memory.evaluation.experiments.experiment_report import Evidence
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS
from speckit_memory.evaluation.statistics.distinct import lot
from speckit_memory.evaluation.statistics.metrics import evaluate, relevant
from speckit_memory.memory.store.evaluation.records import Pair
from speckit_memory.pipeline.ports import Column

Judgements = Mapping[str, Mapping[int, float]]
"""By query and by memory, both by id: how relevant the memory is; above 0 it is."""

FEWEST = 10
"""Below so many differing queries with evidence nothing is said of the quality: a sample of one or two says nothing."""

_DEPTH = {"nDCG@10": 10, "MRR@5": 5, "Recall@20": 20, "Hit@1": 1}
"""So many ranks of an answer count."""


OPEN = 0.1
"""Of the questions that came first by lot, at most so many may be without judgements: their worst is assumed."""


class Answered(NamedTuple):
    """One question: the keys that both pipelines answered with, best first, and what is known of them.

    `lot` is its place in the order of judging.
    """

    lot: bytes
    control: Sequence[str]
    variant: Sequence[str]
    known: Mapping[str, float]


class Evidenced(NamedTuple):
    """One metric over all questions that both answered.

    `column` holds the variant minus the control for the questions that differ in what counts and have evidence;
    `unknown` more differ and have none that counts, and `alike` differ in nothing that counts: their difference is 0.
    Of the unknown, `skipped` came by lot among those of the column.
    """

    evidence: Evidence
    metric: str
    column: Column
    alike: int
    unknown: int
    skipped: int = 0

    def bounds(self) -> tuple[Column, Column]:
        """The column with the worst of what was skipped, and with the best."""
        worst, best = (np.append(self.column, np.full(self.skipped, end)) for end in (-1.0, 1.0))
        return worst, best

    def times(self, factor: float) -> Evidenced:
        """What so many times as many queries would show, were they like these."""
        column = np.resize(self.column, round(factor * len(self.column)))
        alike, unknown, skipped = (round(factor * count) for count in (self.alike, self.unknown, self.skipped))
        return self._replace(column=column, alike=alike, unknown=unknown, skipped=skipped)


def answered_with(questions: Sequence[Sequence[Pair]], judgements: Judgements) -> list[Answered]:
    """The first answers to each question, with what is known of each from all the times that it was asked."""
    return [
        Answered(
            lot(first.query.id, readable=bool(first.query.question)),
            [str(memory) for memory in first.control.memories],
            [str(memory) for memory in first.variant.answer.memories],
            {
                str(memory): grade
                for pair in (first, *again)
                for memory, grade in judgements.get(pair.query.id, {}).items()
            },
        )
        for first, *again in questions
    ]


def evidenced(
    answers: Sequence[Answered], evidence: Evidence, *, alike: int = 0, metrics: Sequence[str] = COMPARED_METRICS
) -> list[Evidenced]:
    """The metrics on which at least `FEWEST` differing questions have evidence, and those on which nothing differs.

    Nothing comes back where all there is to say is that one metric is the same everywhere. `alike` is how many further
    questions both answered with the same lists. Only judgements of the questions that come first by lot are evidence:
    those that somebody chose to judge speak for no others. Uses are evidence of a query of which something was used.
    Judgements are where every document that can make a difference has one: for nDCG@10 those among the first ten that
    stand elsewhere in the two answers, for MRR@5 those among the first five down to the first relevant one of each
    answer, for Recall@20 those that only one of the two answers has, for Hit@1 the first of each.
    """
    every = [_of_metric(answers, metric, evidence, alike) for metric in metrics]
    found = [one for one in every if len(one.column) >= FEWEST or not len(one.column) + one.unknown]
    if any(len(one.column) for one in found):
        return found
    return found if answers and evidence == "judgements" and len(found) == len(every) else []


def told_apart(answers: Sequence[Answered], metric: str = COMPARED_METRICS[0]) -> int:
    """On how many queries the two answers differ on a metric, and every document that can make a difference is judged,
    in the order of the lots, out of which none counts; from `FEWEST` on there is a figure."""
    return len(_of_metric(answers, metric, "judgements", 0).column)


def _of_metric(answers: Sequence[Answered], metric: str, evidence: Evidence, alike: int) -> Evidenced:
    differing = [one for one in answers if _differs(one, metric)]
    drawn = [(one, _complete(one, metric, evidence)) for one in sorted(differing, key=lambda one: one.lot)]
    first = drawn if evidence == "uses" else drawn[: _reach([complete for _, complete in drawn])]
    known = [one for one, complete in first if complete]
    column = np.zeros(len(known))
    told = [place for place, one in enumerate(known) if relevant(one.known)]  # where nothing is, neither gains anything
    if told:
        grades = [known[place].known for place in told]
        control = evaluate([known[place].control for place in told], grades)[metric]
        column[told] = evaluate([known[place].variant for place in told], grades)[metric] - control
    same = alike + len(answers) - len(differing)
    skipped = 0 if evidence == "uses" else len(first) - len(known)
    return Evidenced(evidence, metric, column, same, len(differing) - len(known), skipped)


def _reach(complete: Sequence[bool]) -> int:
    """How many questions count, in the order of the lots: as far as at most a tenth is open, and the last is judged.

    The bets hold at the end of every such row at once, so that it may be chosen.
    """
    counts = np.cumsum(complete)
    ends = np.flatnonzero(np.array(complete, bool) & (counts >= (1 - OPEN) * np.arange(1, len(complete) + 1)))
    return int(ends[-1]) + 1 if len(ends) else 0


def _differs(one: Answered, metric: str) -> bool:
    """Whether the answers can differ on a metric, whatever is relevant."""
    control, variant = one.control[: _DEPTH[metric]], one.variant[: _DEPTH[metric]]
    return {*control} != {*variant} if metric == "Recall@20" else control != variant


def _told_apart(one: Answered, metric: str) -> set[str]:
    """The documents whose judgements tell two answers apart that differ on a metric."""
    control, variant = one.control[: _DEPTH[metric]], one.variant[: _DEPTH[metric]]
    if metric == "Recall@20":
        return {*control} ^ {*variant}
    if metric == "nDCG@10":
        before, after = ({key: rank for rank, key in enumerate(keys)} for keys in (control, variant))
        return {key for key in {**before, **after} if before.get(key) != after.get(key)}
    if metric == "MRR@5":
        return {*_to_first_relevant(control, one.known), *_to_first_relevant(variant, one.known)}
    return {*control, *variant}


def _to_first_relevant(keys: Sequence[str], known: Mapping[str, float]) -> Sequence[str]:
    """The keys that decide on a reciprocal rank: none below the first one that is known to be relevant."""
    return keys[: next((rank for rank, key in enumerate(keys, start=1) if known.get(key, 0.0) > 0), len(keys))]


def _complete(one: Answered, metric: str, evidence: Evidence) -> bool:
    if evidence == "uses" or not one.known:  # most of many queries have no judgements: they are passed quickly
        return relevant(one.known) > 0
    return _told_apart(one, metric) <= set(one.known)
