"""Known answers of the simple signals, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from components.pools import applied, evidence
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from speckit_memory.pipeline.model.columns import Pool
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.roles.contracts import Signal
from speckit_memory.pipeline.running.apply import apply_signal
from speckit_memory.pipeline.testing import DAY, NOW, FakeStore, Memory, ask, pool_of
from speckit_memory.signals.composite import Composite, CompositeParams
from speckit_memory.signals.confidence import Confidence, ConfidenceParams
from speckit_memory.signals.encoding_intent import EncodingIntent, EncodingIntentParams
from speckit_memory.signals.hierarchy import Hierarchy, HierarchyParams
from speckit_memory.signals.importance import Importance, ImportanceParams
from speckit_memory.signals.interference import Interference, InterferenceParams
from speckit_memory.signals.novelty import Novelty, NoveltyParams
from speckit_memory.signals.recency import Recency, RecencyParams
from speckit_memory.signals.session import Session, SessionParams
from speckit_memory.signals.temporal import Temporal, TemporalParams
from speckit_memory.signals.validation import Validation, ValidationParams

HOUR = 3600.0


def even(store: FakeStore, score: float = 0.5) -> Pool:
    return pool_of(store, dict.fromkeys(store.memories, score))


@pytest.mark.requirement("F7.boosts")
def test_each_tier_has_its_factor_and_an_unknown_tier_counts_as_normal() -> None:
    tiers = ["constitutional", "critical", "important", "normal", "temporary", "deprecated", "strange"]
    store = FakeStore(*(Memory(i, tier=tier) for i, tier in enumerate(tiers, start=1)))

    factors = evidence(Importance(ImportanceParams()), ask(), even(store), store)

    assert factors == {1: 3.0, 2: 2.0, 3: 1.5, 4: 1.0, 5: 0.5, 6: 0.0, 7: 1.0}


@pytest.mark.requirement("F6")
def test_retrievability_of_the_last_event_is_added() -> None:
    store = FakeStore(
        Memory(1, numbers={"created_at": NOW - 5 * DAY, "last_accessed": NOW - DAY, "stability": 1.0}),
        Memory(2, numbers={"created_at": NOW, "stability": 1.0}),
        Memory(3),
    )

    # one day at stability 1: R = 0.9; created now: R = 1; nothing known: nothing
    assert evidence(Temporal(TemporalParams(weight=0.25)), ask(), even(store), store) == pytest.approx(
        {1: 0.225, 2: 0.25, 3: 0.0}
    )


@pytest.mark.requirement("F10")
def test_classification_slows_decay_by_stability_or_by_time() -> None:
    numbers = {"created_at": NOW - 3 * DAY, "stability": 1.0}
    store = FakeStore(
        Memory(1, tier="important", context_type="research", numbers=numbers),
        Memory(2, context_type="decision", numbers=numbers),
    )
    by_stability = Temporal(TemporalParams(weight=1.0, classification="stability"))
    by_time = Temporal(TemporalParams(weight=1.0, classification="elapsed"))

    # stability 1 · 2 · 1.5 = 3 against 3 days: R = 0.9; decisions do not decay
    assert evidence(by_stability, ask(), even(store), store) == pytest.approx({1: 0.9, 2: 1.0})
    # 3 days · 0.5 = 1.5: (1 + 19/81 · 1.5)^-0.5; the context plays no part: (1 + 19/81 · 3)^-0.5
    assert evidence(by_time, ask(), even(store), store) == pytest.approx(
        {1: (1 + 28.5 / 81) ** -0.5, 2: (1 + 57 / 81) ** -0.5}
    )


@pytest.mark.requirement("F10.context", "F10.tier")
@pytest.mark.parametrize(
    ("context", "tier", "days"),
    [
        # stability 1 · context · tier; after as many days retrievability is 9/10
        ("general", "normal", 1.0),
        ("implementation", "normal", 1.0),
        ("discovery", "normal", 1.0),
        ("research", "normal", 2.0),
        ("general", "important", 1.5),
        ("general", "temporary", 0.5),
        ("general", "deprecated", 0.25),
        ("research", "important", 3.0),  # 2 · 1.5
        ("research", "temporary", 1.0),  # 2 · .5
        ("research", "deprecated", 0.5),  # 2 · .25
    ],
)
def test_each_context_and_tier_stretches_stability(context: str, tier: str, days: float) -> None:
    numbers = {"created_at": NOW - days * DAY, "stability": 1.0}
    store = FakeStore(Memory(1, context_type=context, tier=tier, numbers=numbers))
    by_stability = Temporal(TemporalParams(weight=1.0, classification="stability"))

    assert evidence(by_stability, ask(), even(store), store) == pytest.approx({1: 0.9})


@pytest.mark.requirement("F7.decay", "F10.tier")
@pytest.mark.parametrize(
    ("context", "tier"),
    [("decision", "normal"), ("decision", "deprecated"), ("general", "constitutional"), ("research", "critical")],
)
def test_decisions_and_protected_tiers_never_decay(context: str, tier: str) -> None:
    numbers = {"created_at": NOW - 900 * DAY, "stability": 1.0}
    store = FakeStore(Memory(1, context_type=context, tier=tier, numbers=numbers))
    by_stability = Temporal(TemporalParams(weight=1.0, classification="stability"))

    # an infinite factor times any other: R = 1 after 900 days
    assert evidence(by_stability, ask(), even(store), store) == {1: 1.0}


@pytest.mark.requirement("F10.one")
def test_stability_and_elapsed_time_are_never_multiplied_together() -> None:
    # one parameter with one value: there is no way to say both, here or in the composite, which only knows stability
    with pytest.raises(ValidationError):
        TemporalParams.model_validate({"classification": ["stability", "elapsed"]})
    assert "classification" not in CompositeParams.model_fields
    assert "temporal" in Composite.about.conflicts


@pytest.mark.requirement("F6")
@pytest.mark.parametrize(
    ("days", "stability", "expected"),
    [
        # (1 + 19/81 · t/S)^-½
        (0.0, 1.0, 1.0),
        (81 / 19, 1.0, 0.7071068),  # 2^-½
        (243 / 19, 1.0, 0.5),  # 4^-½
        (7.0, 1.0, 0.6152273),  # (214/81)^-½ = √.3785047
        (7.0, 7.0, 0.9),  # (100/81)^-½
        (30.0, 2.0, 0.4704375),  # 1 + 285/81 = 366/81; √(81/366) = √.2213115
        (365.0, 30.0, 0.5093886),  # 1 + 19/81 · 12.16667 = 3.8539095; √.2594768
    ],
)
def test_retrievability_at_several_ages_and_stabilities(days: float, stability: float, expected: float) -> None:
    store = FakeStore(Memory(1, numbers={"created_at": NOW - days * DAY, "stability": stability}))

    alone = Temporal(TemporalParams(weight=1.0))
    assert evidence(alone, ask(), even(store), store) == pytest.approx({1: expected}, abs=5e-7)


@pytest.mark.requirement("F8.end")
def test_novelty_fades_over_two_days() -> None:
    ages = {1: 0.0, 2: 12.0, 3: 24.0, 4: 48.0, 5: 48.1, 6: -3.0}
    store = FakeStore(*(Memory(i, numbers={"created_at": NOW - age * HOUR}) for i, age in ages.items()), Memory(7))

    # 0.15 · e^0, e^-1, e^-2, e^-4; past 48 h nothing; dated in the future: new; unknown: nothing
    expected = {1: 0.15, 2: 0.15 / math.e, 3: 0.15 * math.exp(-2), 4: 0.15 * math.exp(-4), 5: 0.0, 6: 0.15, 7: 0.0}
    assert evidence(Novelty(NoveltyParams()), ask(), even(store), store) == pytest.approx(expected)


@pytest.mark.requirement("F8.curve")
@pytest.mark.parametrize(("hours", "boost"), [(0.0, 0.15), (12.0, 0.0551819), (24.0, 0.0203003), (48.0, 0.0027473)])
def test_novelty_at_the_hours_of_the_catalogue(hours: float, boost: float) -> None:
    store = FakeStore(Memory(1, numbers={"created_at": NOW - hours * HOUR}))

    # .15 times 1, .3678794 (1/e), .1353353 (1/e²), .0183156 (1/e⁴); the catalogue rounds to .055, .020 and .003
    assert evidence(Novelty(NoveltyParams()), ask(), even(store), store) == pytest.approx({1: boost}, abs=5e-8)


@pytest.mark.requirement("F8.cap")
def test_novelty_stops_at_its_ceiling_and_never_lowers_a_score() -> None:
    store = FakeStore(*(Memory(i, numbers={"created_at": NOW}) for i in (1, 2, 3)))

    after = applied(Novelty(NoveltyParams()), ask(), pool_of(store, {1: 0.5, 2: 0.9, 3: 0.97}), store)

    assert after == pytest.approx({1: 0.65, 2: 0.95, 3: 0.97})


@pytest.mark.requirement("F9.penalty")
def test_each_near_duplicate_costs_eight_hundredths() -> None:
    counted = {1: 3.0, 2: 1.0, 3: 0.0}
    store = FakeStore(*(Memory(i, numbers={"interference": n}) for i, n in counted.items()), Memory(4))

    penalty = evidence(Interference(InterferenceParams()), ask(), even(store), store)

    # -.08 · 3, -.08 · 1, -.08 · 0; never counted: nothing
    assert penalty == pytest.approx({1: -0.24, 2: -0.08, 3: 0.0, 4: 0.0})


@pytest.mark.requirement("F3")
def test_recency_falls_to_a_third_in_a_year() -> None:
    ages = {1: 0.0, 2: 365.0, 3: -1.0}
    store = FakeStore(*(Memory(i, numbers={"updated_at": NOW - age * DAY}) for i, age in ages.items()), Memory(4))

    bonus = evidence(Recency(RecencyParams(weight=0.1)), ask(), even(store), store)

    assert bonus == pytest.approx({1: 0.1, 2: 0.1 / math.e, 3: 0.1, 4: 0.0})


@pytest.mark.requirement("F13.attention")
def test_attention_counts_fifteen_hundredths_and_only_in_its_session() -> None:
    store = FakeStore(Memory(1), Memory(2, chunks=("a", "b")), attended={"s": {1: 1.0, 2: 0.4}})
    signal = Session(SessionParams())
    pool = pool_of(store, {1: 0.5, 201: 0.5})

    assert evidence(signal, ask(session="s"), pool, store) == pytest.approx({1: 0.15, 201: 0.06})
    assert evidence(signal, ask(session="other"), pool, store) == {1: 0.0, 201: 0.0}


@pytest.mark.requirement("F13")
@pytest.mark.parametrize(("causal", "granted"), [(0.0, 0.15), (0.05, 0.15), (0.12, 0.08), (0.2, 0.0)])
def test_attention_gets_what_causal_links_have_left_of_a_fifth(causal: float, granted: float) -> None:
    store = FakeStore(Memory(1), attended={"s": {1: 1.0}})

    params = SessionParams()
    column = Session(params).evidence(ask(session="s"), even(store), store)
    assert isinstance(column, np.ndarray)

    # full attention is worth .15, unless less is left of .20
    _, added = apply_signal("session", Session.combine, params, even(store), column, np.array([causal]))
    assert added == pytest.approx([granted])


@pytest.mark.requirement("F18")
def test_judgements_move_a_score_both_ways() -> None:
    store = FakeStore(*(Memory(i, numbers={"confidence": c}) for i, c in {1: 1.0, 2: 0.5, 3: 0.0}.items()), Memory(4))

    moved = evidence(Confidence(ConfidenceParams(weight=0.1)), ask(), even(store), store)

    assert moved == pytest.approx({1: 0.1, 2: 0.0, 3: -0.1, 4: 0.0})


@pytest.mark.requirement("F18.validation")
def test_validation_multiplies_by_quality_and_level_within_bounds() -> None:
    store = FakeStore(
        Memory(1, numbers={"validation_count": 4, "confidence": 1.0, "spec_level": 3}),
        Memory(2, numbers={"validation_count": 0, "confidence": 0.5}),
        Memory(3, numbers={"validation_count": 2, "confidence": 0.0, "spec_level": 9}),
    )

    # 0.9 + 0.2 · 1 + 0.04; nobody validated: 0.9 + 0.1; 0.9 + 0 + min(0.16, 0.06)
    factors = evidence(Validation(ValidationParams()), ask(), even(store), store)
    assert factors == pytest.approx({1: 1.14, 2: 1.0, 3: 0.96})
    narrow = evidence(Validation(ValidationParams(max_factor=1.1, min_factor=0.98)), ask(), even(store), store)
    assert narrow == pytest.approx({1: 1.1, 2: 1.0, 3: 0.98})


@pytest.mark.requirement("F18.encoding")
def test_memories_made_for_what_is_intended_gain() -> None:
    store = FakeStore(Memory(1, context_type="decision"), Memory(2, context_type="research"))
    signal, pool = EncodingIntent(EncodingIntentParams(weight=0.1)), even(store)

    decision = ask(plan_intent="find_decision", plan_intent_confidence=0.8)
    assert evidence(signal, decision, pool, store) == pytest.approx({1: 0.08, 2: 0.0})
    assert evidence(signal, ask(plan_intent="understand", plan_intent_confidence=1.0), pool, store) == {1: 0.0, 2: 0.0}


@pytest.mark.requirement("F18.hierarchy")
def test_folders_of_the_best_memories_vouch_for_their_kin() -> None:
    folders = ["a/b", "a/b", "a", "a/b/c/d", "a/x", "z", ""]
    store = FakeStore(*(Memory(i, folder=folder) for i, folder in enumerate(folders, start=1)))
    pool = pool_of(store, {i: 1.0 - i / 10 for i in store.memories})

    kin = evidence(Hierarchy(HierarchyParams(weight=1.0, seeds=1)), ask(), pool, store)

    # memory 1 vouches, not for itself: same 1, parent 0.8, two levels 0.6, sibling 0.5, strangers 0
    assert kin == {1: 0.0, 2: 1.0, 3: 0.8, 4: 0.6, 5: 0.5, 6: 0.0, 7: 0.0}


@pytest.mark.requirement("F18")
def test_a_folder_that_the_query_names_vouches_instead() -> None:
    store = FakeStore(Memory(1, folder="a"), Memory(2, folder="a/b"))

    kin = evidence(Hierarchy(HierarchyParams(weight=1.0)), ask(wanted=Filter(folder="a/")), even(store), store)

    assert kin == {1: 1.0, 2: 0.8}


DATED = st.fixed_dictionaries({}, optional={name: st.floats(0, 2 * NOW) for name in ("created_at", "updated_at")})


OF_TIME = (Temporal(TemporalParams(weight=0.2)), Novelty(NoveltyParams(weight=0.2)), Recency(RecencyParams(weight=0.2)))


@given(st.lists(DATED, min_size=1, max_size=6), st.sampled_from(OF_TIME))
def test_evidence_of_time_stays_between_nothing_and_its_weight(facts: list[dict[str, float]], signal: Signal) -> None:
    store = FakeStore(*(Memory(i, numbers={"stability": 1.0, **f}) for i, f in enumerate(facts, start=1)))

    gains = np.array(list(evidence(signal, ask(), even(store), store).values()))

    assert np.all((gains >= 0.0) & (gains <= 0.2))
