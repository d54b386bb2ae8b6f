"""A judging session: shows pair after pair until no further label can change the verdict on two pipelines.

The pairs are those of query and document on which the pipelines disagree, the most informative ones first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import log2

import numpy as np

from speckit_memory.evaluation.experiments.experiment_evidence import (
    FEWEST,
    AnsweredQuery,
    metrics_with_evidence,
    told_apart,
)
from speckit_memory.evaluation.experiments.experiment_quality import live_verdict
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS, Verdict, compare
from speckit_memory.evaluation.statistics.distinct_queries import lot
from speckit_memory.evaluation.statistics.metrics import evaluate, relevant

DEPTH = 10
"""Number of ranks of each answer that count, as in nDCG@10."""

RECIPROCAL_DEPTH = 5
"""Number of ranks that count in MRR@5."""

MOST = 3
"""The highest grade: 0 of no use, 1 touches the question, 2 helps, 3 answers it."""


@dataclass(frozen=True, slots=True)
class JudgingCase:
    """A query with the keys of both answers, best first, and its known judgements."""

    query: str
    text: str
    control: tuple[str, ...]
    variant: tuple[str, ...]
    judged: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Dispute:
    """An unjudged document that makes a difference between the two answers to a query.

    `weight` is the difference in discounted gain, variant minus control, per point of grade. It is 0 for a document at
    the top of both answers, which decides whether the documents below count for a reciprocal rank.
    """

    case: JudgingCase
    key: str
    weight: float


def disputes(cases: Sequence[JudgingCase], *, seed: int, live: bool = False) -> list[Dispute]:
    """All unjudged documents that matter, those with the largest weight first; ties are in random order.

    For a `live` experiment all documents of a query come together and the queries come by lot, because its verdict
    represents unjudged queries and those that differ most do not. Documents at the top of both answers come last of
    their query, and only for a live experiment. A query with equal answers has none: its labels raise or lower both.
    """
    found = [
        Dispute(case, key, _gain(case.variant, key) - _gain(case.control, key))
        for case in cases
        # The first DEPTH of both answers, each document once.
        for key in dict.fromkeys((*case.control[:DEPTH], *case.variant[:DEPTH]))
        if key not in case.judged
    ]
    told = [one for one in found if one.weight or (live and one.key in _common_top(one.case))]
    # Shuffled before a stable sort: equal weights keep their random order.
    shuffled = [told[place] for place in np.random.default_rng(seed).permutation(len(told)).tolist()]
    # rounded, so that equal weights stay in random order
    weightiest = sorted(shuffled, key=lambda dispute: -round(abs(dispute.weight), 9))
    return sorted(weightiest, key=lambda dispute: lot(dispute.case.query)) if live else weightiest


def _common_top(case: JudgingCase) -> tuple[str, ...]:
    """The common prefix of both answers, if it can decide a difference in reciprocal rank.

    It cannot if all ranks that count are the same, or if one of its documents is known to be relevant: then both
    reciprocal ranks are equal.
    """
    control, variant = case.control[:RECIPROCAL_DEPTH], case.variant[:RECIPROCAL_DEPTH]
    common = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(control, variant, strict=False))]
    if control == variant or any(case.judged.get(key, 0.0) > 0 for key in common):
        return ()
    return tuple(common)


def _gain(keys: Sequence[str], key: str) -> float:
    """The discount at the rank of a document, 1 / log2(rank + 1); 0 beyond the depth."""
    # keys.index counts from 0, so rank + 1 is index + 2 (Järvelin and Kekäläinen 2002, discount of nDCG).
    return 1 / log2(keys.index(key) + 2) if key in keys[:DEPTH] else 0.0


CHECKED_EVERY = 5
"""Number of labels between tests of whether the verdict is final; a test takes a moment."""

SEED = 20
_CONTROL, _VARIANT = "control", "variant"


@dataclass(frozen=True, slots=True)
class Label:
    """The grade of one document for one query."""

    query: str
    key: str
    grade: int


class JudgingSession:
    """The pairs to be judged and their labels. A judge is not shown which pipeline found a document.

    For `live` cases of an experiment the verdict is the one in its report, which judges `variants` variants.
    """

    def __init__(self, cases: Sequence[JudgingCase], *, live: bool = False, variants: int = 1) -> None:
        self.live, self._variants = live, variants
        self._cases = tuple(cases)
        self._open = disputes(cases, seed=SEED, live=live)
        self._said: list[tuple[Dispute, int | None]] = []
        # Number of labels and verdict of the last test, -1 for none yet.
        self._closed: tuple[int, Verdict | None] = (-1, None)
        self._latest: tuple[int, Verdict | None] = (0, None)

    def __len__(self) -> int:
        """The initial number of pairs."""
        return len(self._open)

    @property
    def said(self) -> int:
        """The number of pairs graded or skipped."""
        return len(self._said)

    @property
    def judged_queries(self) -> int:
        """The number of queries whose judgements can distinguish the two pipelines on nDCG@10."""
        judged = dict(self.judged())
        if self.live:
            return told_apart(
                [
                    AnsweredQuery(lot(one.query), one.control, one.variant, judged.get(one.query, {}))
                    for one in self._cases
                ]
            )
        return sum(relevant(grades) > 0 for grades in judged.values())

    @property
    def needed_queries(self) -> int:
        """The number of such queries from which a live experiment has a verdict."""
        return FEWEST

    @property
    def latest(self) -> Verdict | None:
        """The verdict when it was last computed; None where nothing relevant was known by then."""
        # The last multiple of CHECKED_EVERY; only there the verdict is computed.
        at = self.said - self.said % CHECKED_EVERY
        if self._latest[0] != at and at == self.said:
            self._latest = at, self.verdict()
        return self._latest[1] if self.said else None

    @property
    def labels(self) -> list[Label]:
        """The labels in order, without skipped pairs."""
        return [Label(one.case.query, one.key, grade) for one, grade in self._said if grade is not None]

    @property
    def present(self) -> Dispute | None:
        """The pair to judge next; None when none is left, or when the verdict is final."""
        if len(self._said) >= len(self._open) or self.closed is not None:
            return None
        return self._open[len(self._said)]

    def upcoming(self, count: int) -> list[Dispute]:
        """The present pair and those after it, at most `count`; empty when the verdict is final."""
        return self._open[len(self._said) : len(self._said) + count] if self.present is not None else []

    @property
    def last(self) -> Label | None:
        """The label given last; None if the last pair was skipped or there is none."""
        if not self._said or (grade := self._said[-1][1]) is None:
            return None
        return Label(self._said[-1][0].case.query, self._said[-1][0].key, grade)

    def say(self, grade: int | None) -> None:
        """Records a grade, 0 to 3, for the present pair; None skips it."""
        self._said.append((self._open[len(self._said)], grade))

    def undo(self) -> bool:
        """Removes the last label or skip; False when there is none."""
        if not self._said:
            return False
        self._said.pop()
        self._closed = (-1, None)
        return True

    @property
    def closed(self) -> Verdict | None:
        """The verdict on nDCG@10 if no further label can change it, else None."""
        count = len(self._said)
        if count % CHECKED_EVERY and count < len(self._open):
            return self._closed[1] if self._closed[0] == count - count % CHECKED_EVERY else None
        if self._closed[0] != count:
            # the verdict is final if both extremes of the open labels give the same one
            verdicts = {self._verdict(_VARIANT), self._verdict(_CONTROL)}
            if self.live:
                verdicts.add(self.verdict())  # the report ignores unjudged documents
            verdict = verdicts.pop() if len(verdicts) == 1 else None
            # Undecided is final only when no pair is left: later labels could still decide.
            self._closed = (count, None if verdict == "undecided" and count < len(self._open) else verdict)
        return self._closed[1]

    def _verdict(self, favoured: str) -> Verdict | None:
        """The verdict if all open labels favoured one of the two pipelines; None where nothing is relevant."""
        rest = self._open[len(self._said) :]
        extreme = {
            # The best case of one pipeline: MOST where a label helps it, 0 where it helps the other.
            (one.case.query, one.key): float(MOST) if (one.weight > 0) == (favoured == _VARIANT) else 0.0
            for one in rest
            if one.weight  # documents at the top of both raise both
        }
        return verdict_of(self._cases, {**self._graded(), **extreme}, live=self.live, variants=self._variants)

    def _graded(self) -> Mapping[tuple[str, str], float]:
        return {(label.query, label.key): float(label.grade) for label in self.labels}

    def verdict(self) -> Verdict | None:
        """The verdict by the labels so far; None where nothing is relevant."""
        return verdict_of(self._cases, self._graded(), live=self.live, variants=self._variants)

    def judged(self) -> Iterator[tuple[str, Mapping[str, float]]]:
        """All judgements by query, earlier ones included."""
        said = self._graded()
        for case in self._cases:
            new = {key: grade for (query, key), grade in said.items() if query == case.query}
            if case.judged or new:
                yield case.query, {**case.judged, **new}


def verdict_of(
    cases: Sequence[JudgingCase], said: Mapping[tuple[str, str], float], *, live: bool = False, variants: int = 1
) -> Verdict | None:
    """The verdict on nDCG@10 by earlier judgements and new labels.

    Args:
        cases: The queries with both answers and earlier judgements.
        said: New grades by (query, key).
        live: Judges as the report of a live experiment does: all queries take part.
        variants: Number of variants that a live verdict is corrected for.

    Returns:
        The verdict; None without a query with a relevant document, or for `live` while too few are judged.
    """
    by_query: dict[str, dict[str, float]] = {}
    for (query, key), grade in said.items():
        by_query.setdefault(query, {})[key] = grade
    judged = [(case, {**case.judged, **by_query.get(case.query, {})}) for case in cases]
    # The report's own test, so that a session never ends on another verdict than the report shows.
    if live:
        answers = [AnsweredQuery(lot(case.query), case.control, case.variant, grades) for case, grades in judged]
        found = [one for one in metrics_with_evidence(answers, "judgements") if one.metric == COMPARED_METRICS[0]]
        return live_verdict(found[0], variants=variants) if found else None
    # A query without a relevant document has no nDCG and is left out of both columns.
    counted = [(case, grades) for case, grades in judged if relevant(grades)]
    if not counted:
        return None
    grades = [grades for _, grades in counted]
    values = {
        _CONTROL: evaluate([case.control for case, _ in counted], grades),
        _VARIANT: evaluate([case.variant for case, _ in counted], grades),
    }
    return compare(values, [(_CONTROL, _VARIANT)])[0].verdict
