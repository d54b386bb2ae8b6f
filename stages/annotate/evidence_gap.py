"""Says when the store probably does not hold the answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.pipeline.contracts import About, Params
from speckit_memory.pipeline.hooks import EvidenceRule
from speckit_memory.pipeline.lookup import coverage
from speckit_memory.pipeline.model import GAP_WARNING, Notes, Query
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.ranking import Ranking


class EvidenceGapParams(Params):
    """What is taken as missing evidence."""

    form: Literal["z", "coverage"] = Field(
        "z",
        description="z: the best score stands out too little; coverage: the best rows hold too little of the query.",
    )
    min_z: float = Field(
        1.5, ge=0, le=10, description="Form z: standard deviations by which the best score must stand out."
    )
    min_score: float = Field(0.015, ge=0, description="Form z: the best score must be at least this.")
    min_coverage: float = Field(
        0.4, ge=0, le=1, description="Form coverage: share of the query's information that one row must hold."
    )
    false_alarm_rate: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Form coverage: share of answerable questions to which `pipeline calibrate` fitted the limit; the "
        "warning says it.",
    )
    top: int = Field(5, ge=1, le=50, description="Form coverage: how many rows are looked at.")
    ignore_tiers: list[str] = Field(
        ["constitutional"], description="Tiers that surface whatever is asked, and so are no evidence."
    )


class EvidenceGap:
    """Warns when the evidence for an answer is weak, in words that an agent can act on.

    Form `z` is that of the catalogue: a gap when (best - mean) / deviation < 1.5 or best < 0.015. Two limits
    come with it: the largest z that n values can have is √(n-1), so that it always warns for 3 rows or fewer
    (for a single row only the absolute test is made); and on normalised scores the absolute test says nothing.

    Form `coverage` measures on an absolute scale, the same for every store and pipeline: the share of the
    query's information, Σ idf of its distinct words, that title, triggers or text of one of the best rows hold.
    Its limit can be fitted to a stated rate of false alarms (`pipeline calibrate`). Feature A4.
    """

    about = About(features=("A4",))
    Params = EvidenceGapParams

    def __init__(self, params: EvidenceGapParams) -> None:
        self._params = params
        self._ignored_tiers = tuple(params.ignore_tiers)

    @classmethod
    def evidence_rule(cls, params: EvidenceGapParams) -> EvidenceRule:
        """Form `coverage` has a limit on what a row holds of the question."""
        limit = params.min_coverage if params.form == "coverage" else None
        return EvidenceRule(params.top, tuple(params.ignore_tiers), limit)

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """`evidence_gap`, the measure behind it, and a warning when there is one."""
        p = self._params
        counted = ~any_of(store.attributes.label("tier", ranking.ids), self._ignored_tiers)
        if not counted.any():
            return _gap("nothing was found", {})
        if p.form == "coverage":
            share = coverage(query.terms, ranking.parents[counted][: p.top], store.lexicon, store.attributes.count)
            weak = share < p.min_coverage
            reason = f"the best results hold {share:.0%} of the query; {p.min_coverage:.0%} are expected"
            if p.false_alarm_rate is not None:
                reason += f", which {p.false_alarm_rate:.0%} of the answerable questions miss"
            found = {"coverage": round(share, 4)}
        else:
            scores = ranking.scores[counted]
            best, deviation = float(scores.max()), float(scores.std())
            z = (best - float(scores.mean())) / deviation if deviation > 0 else 0.0
            faint = best < p.min_score
            weak = faint or (len(scores) > 1 and z < p.min_z)
            reason = "the best result is hardly better than nothing" if faint else "no result stands out"
            found = {"z": round(z, 4)}
        return _gap(reason, found) if weak else Notes(overall={"evidence_gap": False, **found})


def _gap(reason: str, found: dict[str, float]) -> Notes:
    warning = f"{GAP_WARNING} {reason}. The store may not hold the answer; check the results, or ask in other words."
    return Notes(overall={"evidence_gap": True, **found}, warnings=(warning,))
