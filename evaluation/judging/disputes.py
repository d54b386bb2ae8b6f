"""What two pipelines disagree on, as pairs of query and document for a judge, the most telling ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import log2

import numpy as np

from speckit_memory.evaluation.statistics.distinct import lot

DEPTH = 10
"""So many ranks of both answers count, as in nDCG@10."""

RECIPROCAL_DEPTH = 5
"""So many count in MRR@5."""

MOST = 3
"""The highest grade: 0 of no use, 1 touches it, 2 helps, 3 is the answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query with the keys that both pipelines answered with, best first, and what is judged of it already."""

    query: str
    text: str
    control: tuple[str, ...]
    variant: tuple[str, ...]
    judged: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Dispute:
    """One document that makes a difference between the two answers to one query, and that nobody has judged.

    `weight` is how much more discounted gain a point of grade brings one pipeline than the other; above 0 it speaks for
    the variant. It is 0 for one at the top of both, which decides whether what follows counts for a reciprocal rank.
    """

    case: Case
    key: str
    weight: float


def disputes(cases: Sequence[Case], *, seed: int, live: bool = False) -> list[Dispute]:
    """All of them, the ones whose label can move the difference most first, equal ones in random order.

    Of a `live` experiment each query is asked for to its end before the next, and the queries come by lot: their
    verdict speaks for queries that nobody judges, and those that differ most say nothing of the others. What stands at
    the top of both comes last of its query, and of a live experiment alone. A query that both answer alike is in none:
    its labels raise or lower both.
    """
    found = [
        Dispute(case, key, _gain(case.variant, key) - _gain(case.control, key))
        for case in cases
        for key in dict.fromkeys((*case.control[:DEPTH], *case.variant[:DEPTH]))
        if key not in case.judged
    ]
    told = [one for one in found if one.weight or (live and one.key in _common_top(one.case))]
    shuffled = [told[place] for place in np.random.default_rng(seed).permutation(len(told)).tolist()]
    weightiest = sorted(shuffled, key=lambda dispute: -round(abs(dispute.weight), 9))
    return sorted(weightiest, key=lambda dispute: lot(dispute.case.query)) if live else weightiest


def _common_top(case: Case) -> tuple[str, ...]:
    """The documents that both answers begin with, where these can decide on a difference in reciprocal rank.

    They cannot where all the ranks that count are the same, or where one of these documents is known to be relevant:
    then so are both reciprocal ranks.
    """
    control, variant = case.control[:RECIPROCAL_DEPTH], case.variant[:RECIPROCAL_DEPTH]
    common = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(control, variant, strict=False))]
    if control == variant or any(case.judged.get(key, 0.0) > 0 for key in common):
        return ()
    return tuple(common)


def _gain(keys: Sequence[str], key: str) -> float:
    """What a point of grade counts at the rank of a document; 0 beyond the depth."""
    return 1 / log2(keys.index(key) + 2) if key in keys[:DEPTH] else 0.0
