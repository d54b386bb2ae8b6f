"""The composite score: all facts about a memory combined into one number."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.fsrs import days_since, days_unused, stability_multipliers, tier_retrievability
from speckit_memory.memory.lifecycle.tables import TIER_WEIGHTS, UNKNOWN_TIER, by_label
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Attributes, Column, Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams
from speckit_memory.signals._matching import SUITS, matched_share, named_label, named_section

FIVE = {"temporal": 0.25, "usage": 0.15, "importance": 0.25, "pattern": 0.20, "citation": 0.15}
SIX = {
    "similarity": 0.30,
    "importance": 0.25,
    "recency": 0.10,
    "usage": 0.15,
    "tier": 0.05,
    "temporal": 0.15,
}
BY_INTENT = {
    "add_feature": {"similarity": 0.3, "importance": 0.4, "recency": 0.3},
    "fix_bug": {"similarity": 0.3, "importance": 0.2, "recency": 0.5},
    "refactor": {"similarity": 0.5, "importance": 0.3, "recency": 0.2},
    "security_audit": {"similarity": 0.4, "importance": 0.5, "recency": 0.1},
    "understand": {"similarity": 0.5, "importance": 0.3, "recency": 0.2},
    "find_spec": {"similarity": 0.4, "importance": 0.5, "recency": 0.1},
    "find_decision": {"similarity": 0.4, "importance": 0.5, "recency": 0.1},
}
IMPORTANCE = {
    Tier.CONSTITUTIONAL: 2.0,
    Tier.CRITICAL: 1.5,
    Tier.IMPORTANT: 1.3,
    Tier.NORMAL: 1.0,
    Tier.TEMPORARY: 0.6,
    Tier.DEPRECATED: 0.1,
}
DOCUMENTS = {
    "constitutional": 2.0,
    "spec": 1.4,
    "decision_record": 1.4,
    "plan": 1.3,
    "tasks": 1.1,
    "implementation_summary": 1.1,
    "scratch": 0.6,
}
"""Multipliers of document types; others count 1."""

_OF_AGE = ("temporal", "recency", "citation")
_CITED_WITHIN_DAYS = 90.0
_FADE_PER_DAY = 0.1


class CompositeParams(SignalParams):
    """The factors of the composite, and its weight relative to the retrieval score."""

    weight: float = Field(
        1.0, ge=0, le=2, description="Score added at a composite of 1.", json_schema_extra={"tunable": [0.0, 1.0]}
    )
    model: Literal["five_factor", "six_factor", "by_intent"] = Field(
        "five_factor",
        description="five_factor: temporal, usage, importance, pattern, citation; six_factor: the older model; "
        "by_intent: similarity, importance and recency weighted by the query's intent.",
    )
    classification_decay: bool = Field(False, description="Multiply stability by factors of context and tier.")
    decay: bool = Field(True, description="Whether age counts; if not, temporal, recency and citation are 1.")
    documents: bool = Field(True, description="Multiply the composite by a factor of the document type.")


class Composite:
    """Adds weight × the composite of a memory: a weighted sum of factors × its document multiplier.

    Factors: temporal = FSRS retrievability, 1 for tiers that do not decay; usage = (min(1.5, 1 + 0.05 · accesses) - 1)
    / 0.5; importance = min(1, importance weight × multiplier of the tier / 2); citation = 1 / (1 + 0.1 · days since the
    last access), 0 after 90 days; pattern = how well the query matches title, section and labels of the memory (see
    `_pattern`); similarity = the retrieval score; recency = 1 / (1 + 0.1 · days since the last change); tier = base of
    the tier.

    Weights of the five-factor model: temporal 0.25, usage 0.15, importance 0.25, citation 0.15, pattern 0.20; of the
    older one: similarity 0.30, importance 0.25, recency 0.10, usage 0.15, tier 0.05, temporal 0.15. Multipliers:
    constitutional 2.0, spec and decision record 1.4, plan 1.3, scratch 0.6. The sum is clamped to [0, 1]; unit scale,
    in [0, weight]. Attribute weights by intent apply only here (feature P6). Novelty and interference are separate
    signals. Feature F5.
    """

    about = About(features=("F5", "F6", "F7", "P6"), needs=(Scale.UNIT, Scale.BOOST), conflicts=("temporal",))
    Params = CompositeParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: CompositeParams) -> None:
        self._params = params

    @classmethod
    def weighs_intent(cls, params: CompositeParams) -> Literal["attributes"] | None:
        """The model `by_intent` weights attributes by intent."""
        return "attributes" if params.model == "by_intent" else None

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from its composite."""
        facts, ids = store.attributes, pool.ids
        weights = {
            "five_factor": FIVE,
            "six_factor": SIX,
            "by_intent": BY_INTENT.get(query.plan.intent, BY_INTENT["understand"]),
        }[self._params.model]
        total = np.zeros(len(pool))
        for name, weight in weights.items():
            total = total + weight * self._factor(name, query, pool, store)
        if self._params.documents:
            total = total * by_label(facts.label("document_type", ids), DOCUMENTS, 1.0)
        return self._params.weight * np.clip(total, 0.0, 1.0)

    def _factor(self, name: str, query: Query, pool: Pool, store: Store) -> Column:
        """One factor of every row, in [0, 1]."""
        facts, ids = store.attributes, pool.ids
        if name in _OF_AGE and not self._params.decay:
            return np.ones(len(pool))
        match name:
            case "similarity":
                return np.clip(pool.score, 0.0, 1.0)
            case "pattern":
                return _pattern(query, pool, store)
            case "temporal":
                return self._temporal(query.now, facts, ids)
            case "usage":
                accesses = np.nan_to_num(facts.number("access_count", ids))
                # (min(1.5, 1 + 0.05 · accesses) - 1) / 0.5, simplified
                return np.minimum(0.05 * accesses, 0.5) / 0.5
            case "importance":
                tiers = facts.label("tier", ids)
                weight = facts.number("importance_weight", ids)
                # Memories without an importance weight get that of their tier.
                weight = np.where(np.isnan(weight), by_label(tiers, TIER_WEIGHTS, UNKNOWN_TIER), weight)
                importance = weight * by_label(tiers, IMPORTANCE, 1.0) / 2.0
                return np.minimum(importance + _boost(query, pool, store), 1.0)
            case "tier":
                return by_label(facts.label("tier", ids), TIER_WEIGHTS, UNKNOWN_TIER)
            case "citation":
                days = days_since(query.now, facts.number("last_accessed", ids))
                # NaN, for a memory that was never accessed, compares as False
                return np.where(days <= _CITED_WITHIN_DAYS, 1.0 / (1.0 + _FADE_PER_DAY * days), 0.0)
            case _:
                days = days_since(query.now, facts.number("updated_at", ids))
                return np.nan_to_num(1.0 / (1.0 + _FADE_PER_DAY * days))

    def _temporal(self, now: float, facts: Attributes, ids: Ids) -> Column:
        stability, tiers = facts.number("stability", ids), facts.label("tier", ids)
        if self._params.classification_decay:
            stability = stability * stability_multipliers(facts.label("context_type", ids), tiers)
        return np.nan_to_num(tier_retrievability(days_unused(facts, ids, now), stability, tiers))


def _boost(query: Query, pool: Pool, store: Store) -> Column | float:
    """The importance added by the query's wording (feature C16) to memories whose triggers match; 0 for others."""
    if not query.plan.importance_boost:
        return 0.0
    matched, _ = store.triggers.matches(query.reading, query.now)
    return np.where(np.isin(pool.candidates.parents, matched), query.plan.importance_boost, 0.0)


def _pattern(query: Query, pool: Pool, store: Store) -> Column:
    """How well the query matches title, section and labels of each memory, in [0, 1].

    0.5 · similarity + 0.5 · max(similarity - 0.8, 0) + title (0.3 if it holds the whole query, else 0.15 × the share
    that it holds) + 0.25 if the query names the section of the matched passage + 0.2 if the context type suits the
    intent + 0.2 if the query names the document type.
    """
    facts, ids = store.attributes, pool.ids
    similarity = np.clip(pool.score, 0.0, 1.0)
    title = matched_share(query.terms, pool.candidates.parents, "title", store)
    suits = facts.label("context_type", ids) == SUITS.get(query.plan.intent)
    fit = (
        0.5 * similarity
        + 0.5 * np.maximum(similarity - 0.8, 0.0)
        + np.where(title > 1.0 - 1e-9, 0.3, 0.15 * title)
        + 0.25 * (named_section(query, pool, store) >= 1.0)
        + 0.2 * suits
        + 0.2 * named_label(query, facts.label("document_type", ids), store)
    )
    return np.asarray(np.minimum(fit, 1.0))
