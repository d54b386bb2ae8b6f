"""Borders and constants of signals that only an exact value tells apart."""

from __future__ import annotations

import pytest
from components.pools import evidence

from speckit_memory.pipeline.testing import Edge, FakeStore, Memory, ask, pool_of
from speckit_memory.signals.causal import Causal, CausalParams
from speckit_memory.signals.composite import Composite, CompositeParams
from speckit_memory.signals.folder_score import FolderScore, FolderScoreParams
from speckit_memory.signals.validation import Validation, ValidationParams


@pytest.mark.requirement("F11.hops")
@pytest.mark.parametrize("mode", ["auto", "focused", "resume"])
def test_every_mode_but_quick_and_deep_walks_two_hops(mode: str) -> None:
    store = FakeStore(*(Memory(i) for i in range(1, 6)), edges=[Edge(i, i + 1) for i in range(1, 5)])

    gain = evidence(Causal(CausalParams()), ask(mode=mode), pool_of(store, {1: 0.9, 2: 0.5, 3: 0.4, 4: 0.3}), store)

    assert {i: value for i, value in gain.items() if value} == pytest.approx({2: 0.05, 3: 0.025})


LASTING = {"stability": float("inf"), "created_at": 0.0}


def composed(
    weight: float = 1.0, boost: float = 0.0, tier: str = "normal", kind: str = "memory", text: str = "wal"
) -> float:
    """What a memory that nobody used gains: .25 for time, .25 · importance for its tier, times its kind."""
    store = FakeStore(Memory(1, tier=tier, document_type=kind, numbers=LASTING, triggers=("wal",)))
    step = Composite(CompositeParams(weight=weight))
    return evidence(step, ask(text, plan_importance_boost=boost), pool_of(store, {1: 0.5}), store)[1]


@pytest.mark.requirement("F5")
def test_the_composite_counts_by_its_weight() -> None:
    assert composed(weight=0.5) == pytest.approx(composed() / 2)
    assert composed(weight=0.5, tier="constitutional", kind="constitutional") == pytest.approx(0.5)


@pytest.mark.requirement("F5", "C16.most")
def test_what_a_plan_adds_to_importance_ends_at_one() -> None:
    # a normal memory has an importance of .5 · 1 / 2
    assert composed(boost=0.2) - composed() == pytest.approx(0.25 * 0.2)
    assert composed(boost=5.0) - composed() == pytest.approx(0.25 * 0.75)


@pytest.mark.requirement("C16.matched")
def test_what_a_plan_adds_to_importance_is_for_memories_whose_phrases_stand_in_the_query() -> None:
    assert composed(boost=0.2, text="the walnut") == composed(text="the walnut")


@pytest.mark.requirement("F5")
def test_the_sum_of_the_factors_ends_at_one() -> None:
    # .25 for time and .25 for importance, doubled: just one; a boost cannot lift it further
    assert composed(tier="constitutional", kind="constitutional") == pytest.approx(1.0)
    assert composed(tier="constitutional", kind="constitutional", boost=1.0) == pytest.approx(1.0)


def validated(count: float, confidence: float) -> float:
    store = FakeStore(Memory(1, numbers={"validation_count": count, "confidence": confidence}))
    return evidence(Validation(ValidationParams()), ask(), pool_of(store, {1: 0.5}), store)[1]


@pytest.mark.requirement("F18.validation")
def test_confidence_counts_from_the_first_validation_on() -> None:
    assert validated(0, 0.9) == validated(0, 0.1)
    assert validated(1, 0.9) > validated(1, 0.1)


@pytest.mark.requirement("F16.damped")
def test_folders_in_which_nothing_scored_gain_nothing() -> None:
    store = FakeStore(Memory(1, folder="a"), Memory(2, folder="b"))
    step = FolderScore(FolderScoreParams(form="damped_sum"))

    assert evidence(step, ask(), pool_of(store, {1: 0.0, 2: 0.0}), store) == {1: 0.0, 2: 0.0}
