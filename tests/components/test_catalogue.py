"""The catalogue preset holds the figures of the feature catalogue, to the digit."""

from __future__ import annotations

from typing import Any

import pytest
from components.flags import EXCLUSIVE, OPEN, opened

from speckit_memory.channels.degree import RELATION_WEIGHTS
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.builder import build, examine
from speckit_memory.signals.composite import BY_INTENT

CONSTANTS: dict[str, dict[str, Any]] = {
    "complexity": {"simple": 3, "complex": 8},
    "pressure": {"focused": 0.6, "quick": 0.8},
    "signal_vocabulary": {"correction": 0.2, "preference": 0.1},
    "router": {
        "simple": {"channels": ("vector", "fts5"), "limit": 5},
        "moderate": {"channels": ("vector", "fts5", "bm25"), "limit": 10},
        "complex": {"channels": ("vector", "fts5", "bm25", "graph", "degree", "community"), "limit": 20},
    },
    "quick_look": {"modes": ("quick",)},
    "expansion": {"variants": 3, "modes": ("deep",)},
    "embedding_expansion": {"neighbours": 5, "terms": 8},
    "coverage": {"min_memories": 3},
    "vector": {"min_similarity": 0.3},
    "fts5": {"weights": {"title": 10.0, "triggers": 5.0, "path": 2.0, "body": 1.0}},
    "bm25": {"k1": 1.2, "b": 0.75, "fields": {"title": 10.0, "triggers": 5.0, "path": 2.0, "body": 1.0}},
    "graph": {"hops": 1},
    "degree": {"max_degree": 50.0, "max_boost": 0.15},
    "constitutional": {"limit": 20},
    "fallback": {"min_similarity": 0.17, "limit_factor": 2.0, "lexical": ("fts5", "bm25")},
    "rrf": {"k": 60.0, "convergence_bonus": 0.1, "weights": "by_intent", "normalise": "min_max"},
    "rsf": {"form": "cross_variant", "variant_bonus": 0.1},
    "importance": {
        "constitutional": 3.0, "critical": 2.0, "important": 1.5, "normal": 1.0, "temporary": 0.5, "deprecated": 0.0,
    },
    "validation": {"base": 0.9, "quality": 0.2, "level": 0.02, "max_level": 0.06, "min_factor": 0.8, "max_factor": 1.2},
    "novelty": {"weight": 0.15, "fade_hours": 12.0, "until_hours": 48.0, "ceiling": 0.95},
    "composite": {"model": "five_factor", "weight": 1.0, "documents": True, "classification_decay": False},
    "classified": {"model": "five_factor", "weight": 1.0, "documents": True, "classification_decay": True},
    "temporal": {"weight": 0.25, "classification": "none"},
    "interference": {"penalty": 0.08},
    "field_match": {"title": 10.0, "triggers": 30.0, "anchors": 20.0, "body": 1.0},
    "recency": {"weight": 0.1, "fade_days": 365.0},
    "contiguity": {"window": 3600.0, "weight": 0.15},
    "folder_score": {
        "form": "composite", "recency": 0.4, "importance": 0.3, "activity": 0.2, "validation": 0.1, "fade": 0.1,
        "full_at": 5,
    },
    "hierarchy": {"parent": 0.8, "grandparent": 0.6, "sibling": 0.5},
    "causal": {
        "per_hop": 0.05, "seed_share": 0.25, "max_seeds": 5, "hops": None, "cap_group": "causal_session", "cap": 0.2,
    },
    "centrality": {"weight": 0.05},
    "community": {"seeds": 5, "found": 3, "share": 0.3},
    "session": {"weight": 0.15, "cap_group": "causal_session", "cap": 0.2},
    "coactivation": {
        "weight": 0.25, "seeds": 5, "related": 5, "min_similarity": 0.7, "hops": 2, "decay": 0.5, "max_memories": 20,
    },
    "collapse": {"aggregate": "mpab", "factor": 0.3},
    "cross_encoder": {"pool": 20, "short": 50, "short_factor": 0.9, "long": 2000, "long_factor": 0.95},
    "channel_floor": {"top": 10, "min_score": 0.2},
    "context_diversity": {"share": 0.5},
    "mmr": {
        "lambda_": "by_intent", "default_lambda": 0.7, "min_confidence": 0.3, "pool": 20, "min_rows": 2,
        "by_intent": {
            "add_feature": 0.7, "fix_bug": 0.85, "refactor": 0.6, "security_audit": 0.75, "understand": 0.5,
            "find_spec": 0.5, "find_decision": 0.5,
        },
    },
    "confidence_cut": {"times_median": 2.0, "min_rows": 3},
    "state_filter": {"limits": {}, "hot": 0.8, "warm": 0.25, "cold": 0.05, "dormant": 0.02, "idle_days": 90.0},
    "state_limits": {
        "limits": {"HOT": 5, "WARM": 10, "COLD": 3, "DORMANT": 2, "ARCHIVED": 1},
        "hot": 0.8, "warm": 0.25, "cold": 0.05, "dormant": 0.02, "idle_days": 90.0,
    },
    "evidence_gap": {"form": "z", "min_z": 1.5, "min_score": 0.015},
    "session_dedup": {"action": "line", "tokens_each": 200},
    "token_budget": {"budget": 2000, "characters_per_token": 4},
    "dynamic_token_budget": {
        "budget": "by_complexity", "simple": 1500, "moderate": 2500, "complex": 4000, "characters_per_token": 4,
    },
}  # fmt: skip
"""The catalogue's figures by step. What stands in the code of a component has known answers among its own tests."""

PROVES = {
    "fts5": ("C2.weights",),
    "bm25": ("C3.formula", "C3.fields",),
    "degree": ("C5.cap",),
    "complexity": ("C9.tiers",),
    "router": ("C10.routes",),
    "quick_look": ("T1",),
    "expansion": ("C11.three",),
    "embedding_expansion": ("C12.terms",),
    "fallback": ("C14.relaxed",),
    "coverage": ("C15.three",),
    "signal_vocabulary": ("C16.correction",),
    "pressure": ("C17.borders",),
    "rrf": ("F1.term", "F1.bonus",),
    "rsf": ("F2.variants",),
    "importance": ("F7.boosts",),
    "novelty": ("F8.curve",),
    "interference": ("F9.penalty",),
    "causal": ("F11.step",),
    "centrality": ("M10.read",),
    "community": ("M10.read",),
    "coactivation": ("F12.spread",),
    "session": ("F13.attention",),
    "contiguity": ("F14.gain",),
    "field_match": ("F15.multipliers",),
    "folder_score": ("F16.parts",),
    "cross_encoder": ("R1.lengths",),
    "mmr": ("R2.intent",),
    "collapse": ("R3.formula",),
    "channel_floor": ("R5.kept",),
    "confidence_cut": ("R6.gap",),
    "context_diversity": ("R7.half",),
    "state_limits": ("A1.limits",),
    "session_dedup": ("A2.saved",),
    "evidence_gap": ("A4.z",),
    "token_budget": ("A6.tokens",),
    "dynamic_token_budget": ("A6.complexity",),
    "state_filter": ("M3.borders",),
}  # fmt: skip
"""Which facts of the requirements the figures of a step are."""

WITHOUT = {
    "intent", "folder_prefilter", "trigger", "learned_trigger", "encoding_intent", "min_max", "pin", "superseded",
    "anchor_filter", "constitutional_guarantee", "attribution",
}  # fmt: skip
"""Steps of which the catalogue names no figure."""

OURS = {
    "z_score", "confidence", "regularise", "standardise", "maxsim", "relevance_floor", "identifier", "named", "phrase",
    "surface", "typed", "spelling", "duplicates", "acronyms", "encoder_notice", "learned_fallback", "fitting",
    "encoder", "times", "dated",
}  # fmt: skip
"""Steps that the catalogue does not know."""


def parameters() -> dict[str, dict[str, Any]]:
    """The parameters of every step of the preset, whichever flag it takes to reach it."""
    found: dict[str, dict[str, Any]] = {}
    for environ in ({}, OPEN, *map(opened, EXCLUSIVE)):
        for entry in examine("catalogue", registry(), environ).bound:
            found[entry.step.id] = entry.params.model_dump() if entry.params else {}
    return found


PARAMETERS = parameters()


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=pytest.mark.requirement(*PROVES.get(step, ("P2",)))) for step in CONSTANTS]
)
def test_a_step_of_the_preset_has_the_figures_of_the_catalogue(step: str) -> None:
    assert {name: PARAMETERS[step][name] for name in CONSTANTS[step]} == CONSTANTS[step]


def test_of_each_step_of_the_preset_it_is_known_where_its_figures_come_from() -> None:
    sources = (set(CONSTANTS), WITHOUT, OURS)

    assert [step for step in PARAMETERS if sum(step in source for source in sources) != 1] == []


@pytest.mark.requirement("P6.attributes")
def test_the_preset_weighs_attributes_by_intent_when_one_word_is_changed() -> None:
    built = build("catalogue", registry(), {}, {"composite.model": "by_intent"})

    kinds = [step.component.weighs_intent(step.params) for step in (built.fusion.fuser, *built.fusion.signals)
             if hasattr(step.component, "weighs_intent")]  # fmt: skip
    assert kinds == ["channels", "attributes"]
    assert BY_INTENT == {
        "add_feature": {"similarity": 0.3, "importance": 0.4, "recency": 0.3},
        "fix_bug": {"similarity": 0.3, "importance": 0.2, "recency": 0.5},
        "refactor": {"similarity": 0.5, "importance": 0.3, "recency": 0.2},
        "security_audit": {"similarity": 0.4, "importance": 0.5, "recency": 0.1},
        "understand": {"similarity": 0.5, "importance": 0.3, "recency": 0.2},
        "find_spec": {"similarity": 0.4, "importance": 0.5, "recency": 0.1},
        "find_decision": {"similarity": 0.4, "importance": 0.5, "recency": 0.1},
    }


@pytest.mark.requirement("C5.weights")
def test_the_relations_weigh_what_the_catalogue_says() -> None:
    assert RELATION_WEIGHTS == {
        "caused": 1.0, "derived_from": 0.9, "enabled": 0.8, "contradicts": 0.7, "supersedes": 0.6, "supports": 0.5,
    }  # fmt: skip
