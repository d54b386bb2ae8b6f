"""Reports when the store probably does not hold the answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.pipeline.arithmetic import best_of
from speckit_memory.pipeline.model.columns import GAP_WARNING, Notes, Plan, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.pipeline.roles.hooks import EvidenceRule
from speckit_memory.pipeline.running.lookup import coverage

FEW = 5
"""Number of rows considered as evidence if no row is similar to the query."""


class EvidenceGapParams(Params):
    """The measure of evidence and its limits."""

    form: Literal["z", "coverage", "evidence"] = Field(
        "z",
        description="z: the best score stands out too little; coverage: the best rows hold too little of the query; "
        "evidence: the best row is long and holds too little of it, or no row holds enough or is similar.",
    )
    min_z: float = Field(
        1.5, ge=0, le=10, description="Form z: standard deviations by which the best score must stand out."
    )
    min_score: float = Field(0.015, ge=0, description="Form z: minimum of the best score.")
    min_coverage: float = Field(
        0.4, ge=0, le=1, description="Forms coverage and evidence: minimum share of the query's information."
    )
    long: float = Field(
        20,
        ge=1,
        le=1000,
        description="Form evidence: a row is long from this multiple of the query's characters on.",
    )
    similarity: str = Field(
        "", description="Form evidence: id of the channel whose scores are cosines; without one, words alone decide."
    )
    min_cosine: float = Field(
        0.24, ge=-1, le=1, description="Form evidence: minimum cosine, by static vectors, of some passage."
    )
    enough_coverage: float = Field(
        0.7, ge=0, le=1, description="Form evidence: share of the query from which on no similarity is needed."
    )
    false_alarm_rate: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Form coverage: false alarm rate to which `pipeline calibrate` fitted the limit; part of the "
        "warning.",
    )
    top: int = Field(5, ge=1, le=50, description="Form coverage: number of best rows considered.")
    ignore_tiers: list[str] = Field(
        ["constitutional"], description="Tiers in every answer, which are no evidence for this query."
    )


class EvidenceGap:
    """Warns when the evidence for an answer is weak, in words that an agent can act on.

    Form `z` reports a gap if (best - mean) / deviation < 1.5 or best < 0.015. It has two limitations: the largest
    possible z of n values is √(n-1), so that it always warns for 3 rows or fewer (a single row only gets the absolute
    test); and on normalised scores the absolute test says nothing.

    Form `coverage` measures on an absolute scale, the same for every store and pipeline: the share of the query's
    information, Σ idf of its distinct words, that title, triggers or text of one of the best rows hold. Its limit can
    be fitted to a given rate of false alarms (`pipeline calibrate`).

    Form `evidence` has two absolute measures. The best row, if it is far longer than the query, must hold
    `min_coverage` of it; a short note need not. And some row must hold `enough_coverage`, or some passage among the
    hits must have the cosine `min_cosine`, by static vectors: cosines of other models differ less. A query about a time
    alone is answered by a memory of that time. Feature A4.
    """

    about = About(features=("A4",))
    Params = EvidenceGapParams

    def __init__(self, params: EvidenceGapParams) -> None:
        self._params = params
        self._ignored_tiers = tuple(params.ignore_tiers)

    @classmethod
    def check(cls, params: EvidenceGapParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The channel is declared."""
        return context.undeclared([(("similarity",), params.similarity)] if params.similarity else [])

    @classmethod
    def evidence_rule(cls, params: EvidenceGapParams) -> EvidenceRule:
        """The limit of form `coverage` on the share of the query that a row holds; None for other forms."""
        limit = params.min_coverage if params.form == "coverage" else None
        return EvidenceRule(params.top, tuple(params.ignore_tiers), limit)

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """`evidence_gap`, the measure behind it, and a warning if there is a gap."""
        p = self._params
        if p.form == "evidence" and len(ranking):
            return self._by_evidence(query, ranking, store)
        counted = ~any_of(store.attributes.label("tier", ranking.ids), self._ignored_tiers)
        if not counted.any():
            return _gap("nothing was found", {})
        if p.form == "coverage":
            share = coverage(query.terms, ranking.parents[counted][: p.top], store.lexicon, store.attributes.count)
            weak = share < p.min_coverage
            reason = f"the best results hold {share:.0%} of the query; {p.min_coverage:.0%} are expected"
            if p.false_alarm_rate is not None:
                reason += f", which {p.false_alarm_rate:.0%} of the answerable queries miss"
            found = {"coverage": round(share, 4)}
        else:
            scores = ranking.scores[counted]
            best, deviation = float(scores.max()), float(scores.std())
            # Population deviation (ddof 0), as in the bound √(n-1) of the class docstring; 0 if all scores are equal.
            z = (best - float(scores.mean())) / deviation if deviation > 0 else 0.0
            faint = best < p.min_score
            # A single row has no spread, so it only gets the absolute test.
            weak = faint or (len(scores) > 1 and z < p.min_z)
            reason = "the best result is hardly better than nothing" if faint else "no result stands out"
            found = {"z": round(z, 4)}
        return _gap(reason, found) if weak else _none(found)

    def _by_evidence(self, query: Query, ranking: Ranking, store: Store) -> Notes:
        p = self._params
        terms = tuple(dict.fromkeys(query.terms))
        if not terms or (query.plan.topic == () and _is_of_its_time(query.plan, ranking.parents[:1], store)):
            return Notes(overall={"evidence_gap": False})
        constitutional = any_of(store.attributes.label("tier", ranking.ids), self._ignored_tiers)
        # The first `top` rows, not counting tiers that are in every answer.
        best = ranking.parents[constitutional | (np.cumsum(~constitutional) <= p.top)]
        share = coverage(terms, best, store.lexicon, store.attributes.count)
        found: dict[str, float] = {"coverage": round(share, 4)}
        reason = f"the best results hold {share:.0%} of the query"
        # cosine: (n,) float64, NaN where the channel found nothing.
        cosine = best_of(ranking.raw, ranking.channels, (p.similarity,))
        if not (np.isfinite(cosine).any() and store.vectors.static):
            short = f"{reason}; {p.min_coverage:.0%} are expected"
            return _gap(short, found) if share < p.min_coverage else _none(found)
        found["cosine"] = round(float(np.nanmax(cosine)), 4)
        # long: (len(best),) bool; the multiple is of characters, not of words.
        long = store.attributes.number("characters", best) > p.long * len(query.text)
        if long.all() and share < p.min_coverage:
            return _gap(f"{reason}, and {p.min_coverage:.0%} are expected of texts as long as these", found)
        if found["cosine"] < p.min_cosine:
            # The best rows by the pool's order are added, constitutional ones included: any of them may hold the
            # answer.
            share = coverage(terms, np.append(best, ranking.parents[:FEW]), store.lexicon, store.attributes.count)
            if share < p.enough_coverage:
                return _gap(f"{reason}, and no result resembles it", found)
        return _none(found)


def _is_of_its_time(plan: Plan, best: Ids, store: Store) -> bool:
    # Spans are half-open: [first, last).
    made = store.attributes.number("created_at", best)
    return bool(plan.order) or any(bool((first <= made).all() and (made < last).all()) for first, last in plan.times)


def _none(found: dict[str, float]) -> Notes:
    return Notes(overall={"evidence_gap": False, **found})


def _gap(reason: str, found: dict[str, float]) -> Notes:
    warning = f"{GAP_WARNING} {reason}. The store may not hold the answer; check the results, or ask in other words."
    return Notes(overall={"evidence_gap": True, **found}, warnings=(warning,))
