"""The weights of every channel while the intent is uncertain, and the profiles of those that stand out."""

from __future__ import annotations

import pytest
from components.tables import candidates, parts, query

from speckit_memory.stages.fusion.rrf import Rrf, RrfParams


def weights(intent: str, confidence: float) -> dict[str, float]:
    """How much a first place with each channel counts; k is 59, so that its term is a sixtieth of that."""
    names = ("vector", "fts5", "bm25", "graph", "degree")
    table = candidates({name: {1: 1.0} for name in names})
    step = Rrf(RrfParams.model_validate({"weights": "by_intent", "k": 59, "convergence_bonus": 0}))
    gained = parts(step.fuse(query(intent, confidence), table), table)[1]
    return {name: round(part * 60, 4) for name, part in gained.items()}


@pytest.mark.requirement("F3", "C8.static")
def test_every_channel_has_a_static_weight() -> None:
    static = {"vector": 1.0, "fts5": 0.8, "bm25": 0.6, "graph": 0.5, "degree": 0.4}

    assert weights("fix_bug", 0.0) == weights("find_decision", 0.2999) == static


@pytest.mark.requirement("F3.profiles")
def test_decisions_are_found_by_links_and_faults_by_meaning_and_words_alike() -> None:
    decision, fault = weights("find_decision", 0.3), weights("fix_bug", 0.3)

    assert decision["graph"] == 0.65  # .50 of the profile and .15 of its causal bias
    assert (fault["vector"], fault["bm25"]) == (0.4, 0.4)
