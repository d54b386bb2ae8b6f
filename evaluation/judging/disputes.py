"""The pairs of query and document on which two pipelines disagree, the most informative ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import log2

import numpy as np

from speckit_memory.evaluation.statistics.distinct_queries import lot

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
