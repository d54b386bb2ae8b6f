"""Signals that compare the query with the outside of memories: field match and composite."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from components.pools import evidence
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.ports import Passage
from speckit_memory.pipeline.testing import DAY, NOW, FakePassages, FakeStore, Memory, ask, pool_of
from speckit_memory.signals._matching import matched_share
from speckit_memory.signals.composite import Composite, CompositeParams
from speckit_memory.signals.field_match import FieldMatch, FieldMatchParams


class Anchored(FakePassages):
    """Passages that lie in named sections."""

    def __init__(self, store: FakeStore, anchors: dict[int, str]) -> None:
        super().__init__(store)
        self._anchors = anchors

    def _passage(self, id_: int) -> Passage:
        return replace(super()._passage(id_), anchor=self._anchors.get(id_, ""))


def idf(count: int, frequency: int) -> float:
    return math.log((count - frequency + 0.5) / (frequency + 0.5) + 1.0)


@pytest.mark.requirement("F15")
def test_rare_words_weigh_more_in_the_share_that_a_field_holds() -> None:
    store = FakeStore(Memory(1, title="rank fusion"), Memory(2, title="rank"), Memory(3, title="other"), holes=2)
    rank, fusion = idf(3, 2), idf(3, 1)

    share = matched_share(("rank", "fusion", "rank"), store.attributes.of_tier("normal"), "title", store)

    assert share.tolist() == pytest.approx([1.0, rank / (rank + fusion), 0.0])


@pytest.mark.requirement("F15.multipliers")
def test_fields_count_by_their_multipliers_and_the_sum_is_bounded() -> None:
    store = FakeStore(
        Memory(1, title="alpha", triggers=("alpha",), chunks=("alpha",)),
        Memory(2, title="alpha"),
        Memory(3, triggers=("alpha",)),
        Memory(4, chunks=("alpha",)),
        Memory(5, chunks=("beta",)),
        Memory(6),
    )
    store.passages = Anchored(store, {1: "alpha", 5: "alpha-beta"})
    pool = pool_of(store, dict.fromkeys(store.memories, 0.5))

    # multipliers 10 + 30 + 20 + 1 = 61; "alpha-beta" is named by half
    gain = evidence(FieldMatch(FieldMatchParams(weight=0.61)), ask("alpha"), pool, store)
    assert gain == pytest.approx({1: 0.61, 2: 0.1, 3: 0.3, 4: 0.01, 5: 0.1, 6: 0.0})


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", ""]), min_size=1, max_size=4))
def test_a_field_match_stays_within_its_weight(words: list[str]) -> None:
    text = " ".join(words)
    store = FakeStore(Memory(1, title=text, triggers=("alpha",), chunks=(text,)), Memory(2, chunks=("beta",)))

    gains = evidence(FieldMatch(FieldMatchParams()), ask(text), pool_of(store, {1: 0.5, 2: 0.4}), store)

    assert all(0.0 <= gain <= 0.15 + 1e-12 for gain in gains.values())


@pytest.mark.requirement("F6", "F5.five")
def test_five_factors_make_the_composite() -> None:
    numbers = {"created_at": NOW - 9 * DAY, "last_accessed": NOW - 10 * DAY, "access_count": 4.0, "stability": 9.0}
    store = FakeStore(
        Memory(1, tier="important", context_type="decision", title="fusion", numbers=numbers),
        Memory(2, title="rank"),
    )
    query = ask("rank fusion", plan_intent="find_decision")
    composite = Composite(CompositeParams(weight=1.0))

    # temporal: the last event is 9 days ago, R(9, 9) = .9; usage min(.5, .05 · 4) / .5 = .4;
    # importance .8 · 1.3 / 2 = .52; citation 1/(1 + .1 · 10) = .5;
    # pattern: similarity .9: .45 + .5 · .1 = .5; title holds half: .075; the context suits: .2 → .775
    expected = 0.25 * 0.9 + 0.15 * 0.4 + 0.25 * 0.52 + 0.15 * 0.5 + 0.20 * 0.775
    assert evidence(composite, query, pool_of(store, {1: 0.9}), store) == pytest.approx({1: expected})


@pytest.mark.requirement("F5", "F6.pattern")
@pytest.mark.parametrize(
    ("memory", "score", "text", "pattern"),
    [
        ({}, 0.0, "other words", 0.0),
        ({}, 0.6, "other words", 0.3),  # .5 · .6
        ({}, 1.0, "other words", 0.6),  # .5 · 1 + .5 · (1 - .8)
        ({"title": "rank fusion"}, 0.0, "rank fusion", 0.3),  # the title holds the whole query
        ({"title": "rank"}, 0.0, "rank fusion", 0.075),  # it holds half, both words being in one title: .15 · .5
        ({"context_type": "decision"}, 0.0, "other words", 0.2),  # made for what a query for decisions intends
        ({"document_type": "plan"}, 0.0, "the plan", 0.2),  # the query names the kind of document
        ({}, 0.0, "next steps", 0.25),  # the query names the section of the passage
        ({}, 0.0, "next", 0.0),  # half of its name is no name
        ({"title": "a plan", "context_type": "decision", "document_type": "plan"}, 0.0, "a plan", 0.7),  # .3 + .2 + .2
        ({"title": "a plan", "context_type": "decision", "document_type": "plan"}, 1.0, "a plan", 1.0),  # 1.3, bounded
    ],
)
def test_pattern_alignment_adds_up_what_fits(memory: dict[str, Any], score: float, text: str, pattern: float) -> None:
    store = FakeStore(Memory(1, **memory), Memory(2, title="fusion"))
    store.passages = Anchored(store, {1: "next-steps"})
    composite = Composite(CompositeParams(documents=False))

    gain = evidence(composite, ask(text, plan_intent="find_decision"), pool_of(store, {1: score}), store)

    # beside .20 · pattern only importance counts: .25 · .5 · 1 / 2
    assert gain == pytest.approx({1: 0.20 * pattern + 0.0625})


@pytest.mark.requirement("F5")
def test_a_spec_document_counts_more_a_scratch_file_less_and_the_product_is_clamped() -> None:
    def memory(id_: int, kind: str, tier: str = "normal") -> Memory:
        return Memory(id_, document_type=kind, tier=tier, numbers={"created_at": NOW, "stability": 1.0})

    store = FakeStore(memory(1, "memory"), memory(2, "spec"), memory(3, "scratch"), memory(4, "constitutional"))
    pool = pool_of(store, dict.fromkeys(store.memories, 0.0))

    # temporal 1 · .25 + importance .5 · 1 / 2 · .25 = .3125
    gain = evidence(Composite(CompositeParams()), ask(), pool, store)
    assert gain == pytest.approx({1: 0.3125, 2: 0.4375, 3: 0.1875, 4: 0.625})
    plain = evidence(Composite(CompositeParams(documents=False)), ask(), pool, store)
    assert plain == pytest.approx(dict.fromkeys(store.memories, 0.3125))


LASTING = {"stability": 1e15, "created_at": NOW}
"""Retrievability 1 whatever happened: the temporal factor gives .25."""


def composed(*memories: Memory) -> dict[int, float]:
    """The composite of each memory of the normal tier above .25 · 1 (temporal) + .25 · .25 (importance)."""
    store = FakeStore(*memories)
    gain = evidence(Composite(CompositeParams()), ask(), pool_of(store, dict.fromkeys(store.memories, 0.0)), store)
    return {i: value - 0.3125 for i, value in gain.items()}


@pytest.mark.requirement("F6.usage")
def test_usage_grows_by_a_twentieth_per_access_up_to_ten() -> None:
    accesses = {1: 0.0, 2: 1.0, 3: 4.0, 4: 10.0, 5: 20.0}

    # .15 · (min(1.5, 1 + .05 n) - 1) / .5: 0, .05/.5, .2/.5, .5/.5, capped at .5/.5
    gain = composed(*(Memory(i, numbers={**LASTING, "access_count": n}) for i, n in accesses.items()))
    assert gain == pytest.approx({1: 0.0, 2: 0.015, 3: 0.06, 4: 0.15, 5: 0.15})


@pytest.mark.requirement("F6.citation")
def test_citation_halves_in_ten_days_and_ends_after_ninety() -> None:
    ages = {1: 0.0, 2: 10.0, 3: 90.0, 4: 90.5}

    # .15 / (1 + .1 · days): .15, .15/2, .15/10, past 90 days nothing
    gain = composed(*(Memory(i, numbers={**LASTING, "last_accessed": NOW - age * DAY}) for i, age in ages.items()))
    assert gain == pytest.approx({1: 0.15, 2: 0.075, 3: 0.015, 4: 0.0})


@pytest.mark.requirement("F5", "F7")
def test_importance_is_base_times_multiplier_of_the_tier_halved() -> None:
    tiers = ("constitutional", "critical", "important", "normal", "temporary", "deprecated")
    gain = composed(*(Memory(i, tier=tier, numbers=LASTING) for i, tier in enumerate(tiers, start=1)))

    # 1 · 2 / 2, 1 · 1.5 / 2, .8 · 1.3 / 2, .5 · 1 / 2, .3 · .6 / 2, .1 · .1 / 2; each · .25
    expected = {1: 0.25, 2: 0.1875, 3: 0.13, 4: 0.0625, 5: 0.0225, 6: 0.00125}
    assert {i: value + 0.0625 for i, value in gain.items()} == pytest.approx(expected)


@pytest.mark.requirement("F5.documents")
def test_each_kind_of_document_has_its_multiplier() -> None:
    kinds = {
        "constitutional": 2.0, "spec": 1.4, "decision_record": 1.4, "plan": 1.3, "tasks": 1.1,
        "implementation_summary": 1.1, "checklist": 1.0, "handover": 1.0, "research": 1.0, "memory": 1.0,
        "scratch": 0.6,
    }  # fmt: skip
    gain = composed(*(Memory(i, document_type=kind, numbers=LASTING) for i, kind in enumerate(kinds, start=1)))

    # the sum .3125, multiplied
    expected = {i: 0.3125 * factor for i, factor in enumerate(kinds.values(), start=1)}
    assert {i: value + 0.3125 for i, value in gain.items()} == pytest.approx(expected)


@pytest.mark.requirement("F5.six")
def test_the_older_model_has_six_factors() -> None:
    numbers = {"created_at": NOW, "updated_at": NOW - 10 * DAY, "access_count": 10.0, "stability": 1.0}
    store = FakeStore(Memory(1, tier="critical", numbers=numbers))

    # similarity .8, importance min(1, 1 · 1.5 / 2) = .75, recency 1/2, usage 1, tier 1, temporal 1
    expected = 0.30 * 0.8 + 0.25 * 0.75 + 0.10 * 0.5 + 0.15 * 1 + 0.05 * 1 + 0.15 * 1
    gain = evidence(Composite(CompositeParams(model="six_factor")), ask(), pool_of(store, {1: 0.8}), store)
    assert gain == pytest.approx({1: expected})


@pytest.mark.requirement("P6", "F5")
def test_attributes_are_weighed_by_intent_in_one_model_only() -> None:
    store = FakeStore(Memory(1, numbers={"updated_at": NOW}, triggers=("wal",)))
    by_intent = CompositeParams(model="by_intent")
    query = ask("wal", plan_intent="fix_bug", plan_importance_boost=0.2)

    # similarity .5 · .3 + importance (.25 + .2) · .2 + recency 1 · .5
    gain = evidence(Composite(by_intent), query, pool_of(store, {1: 0.5}), store)
    assert gain == pytest.approx({1: 0.74})
    assert Composite.weighs_intent(by_intent) == "attributes"
    assert Composite.weighs_intent(CompositeParams()) is None


@pytest.mark.requirement("P6.attributes")
@pytest.mark.parametrize(
    ("intent", "expected"),
    [
        # similarity .8, importance .5 · 1 / 2 = .25, recency 1/(1 + .1 · 10) = .5
        ("add_feature", 0.3 * 0.8 + 0.4 * 0.25 + 0.3 * 0.5),
        ("fix_bug", 0.3 * 0.8 + 0.2 * 0.25 + 0.5 * 0.5),
        ("refactor", 0.5 * 0.8 + 0.3 * 0.25 + 0.2 * 0.5),
        ("security_audit", 0.4 * 0.8 + 0.5 * 0.25 + 0.1 * 0.5),
        ("understand", 0.5 * 0.8 + 0.3 * 0.25 + 0.2 * 0.5),
        ("find_spec", 0.4 * 0.8 + 0.5 * 0.25 + 0.1 * 0.5),
        ("find_decision", 0.4 * 0.8 + 0.5 * 0.25 + 0.1 * 0.5),
    ],
)
def test_each_intent_weighs_similarity_importance_and_recency(intent: str, expected: float) -> None:
    store = FakeStore(Memory(1, numbers={"updated_at": NOW - 10 * DAY}))

    gain = evidence(
        Composite(CompositeParams(model="by_intent")), ask(plan_intent=intent), pool_of(store, {1: 0.8}), store
    )
    assert gain == pytest.approx({1: expected})


@pytest.mark.requirement("F10")
def test_decay_by_classification_is_an_option_of_the_composite() -> None:
    store = FakeStore(Memory(1, context_type="decision", numbers={"created_at": 0.0, "stability": 1.0}))
    pool = pool_of(store, {1: 0.0})

    with_decay = evidence(Composite(CompositeParams()), ask(), pool, store)[1]
    without = evidence(Composite(CompositeParams(classification_decay=True)), ask(), pool, store)[1]

    # temporal becomes 1 instead of (1 + 19/81 · 1000)^-0.5
    assert without - with_decay == pytest.approx(0.25 * (1 - (1 + 19_000 / 81) ** -0.5))
