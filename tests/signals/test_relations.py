"""Signals by which rows support each other: causal, contiguity, coactivation, folder score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from components.pools import applied, evidence
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from speckit_memory.pipeline.ports import Unavailable
from speckit_memory.pipeline.testing import DAY, NOW, Edge, FakeStore, Memory, ask, pool_of
from speckit_memory.signals.causal import Causal, CausalParams
from speckit_memory.signals.coactivation import Coactivation, CoactivationParams
from speckit_memory.signals.contiguity import Contiguity, ContiguityParams
from speckit_memory.signals.folder_score import FolderScore, FolderScoreParams

HOUR = 3600.0


def falling(count: int) -> dict[int, float]:
    return {i: 1.0 - i / 100 for i in range(1, count + 1)}


@pytest.mark.requirement("F11.step")
def test_neighbours_of_the_best_quarter_gain_by_distance_and_relation() -> None:
    store = FakeStore(
        *(Memory(i) for i in range(1, 9)),
        edges=[
            Edge(1, 3, "supersedes", 0.8),
            Edge(3, 4, "caused", 0.5),
            Edge(5, 2, "contradicts"),
            Edge(7, 8),
        ],
    )
    signal, pool = Causal(CausalParams()), pool_of(store, falling(8))

    # seeds: ceil(8 · 0.25) = 2, so 1 and 2. 1→3: 0.05 · 0.8 · 1.5; 3→4 at two hops: 0.05 / 2 · 1.2 · 0.5;
    # 2←5: 0.05 · 0.8; 7 and 8 are linked to no seed
    expected = {1: 0.0, 2: 0.0, 3: 0.06, 4: 0.015, 5: 0.04, 6: 0.0, 7: 0.0, 8: 0.0}
    assert evidence(signal, ask(), pool, store) == pytest.approx(expected)
    quick = evidence(signal, ask(mode="quick"), pool, store)
    assert quick == pytest.approx({**expected, 4: 0.0})
    one_hop = evidence(Causal(CausalParams(hops=1)), ask(mode="deep"), pool, store)
    assert one_hop == quick


@pytest.mark.requirement("F11.hops")
@pytest.mark.parametrize(("mode", "reached"), [
    ("quick", {2: 0.05}),
    ("auto", {2: 0.05, 3: 0.025}),
    ("deep", {2: 0.05, 3: 0.025, 4: 0.05 / 3}),
])  # fmt: skip
def test_the_mode_decides_how_far_is_walked(mode: str, reached: dict[int, float]) -> None:
    # a chain 1→2→3→4→5 of strength 1; the best of four rows is the only seed: 0.05 divided by the hops
    store = FakeStore(*(Memory(i) for i in range(1, 6)), edges=[Edge(i, i + 1) for i in range(1, 5)])

    gain = evidence(Causal(CausalParams()), ask(mode=mode), pool_of(store, {1: 0.9, 2: 0.5, 3: 0.4, 4: 0.3}), store)

    assert {i: value for i, value in gain.items() if value} == pytest.approx(reached)


@pytest.mark.requirement("F11.seeds")
@pytest.mark.parametrize(("rows", "seeds"), [(1, 1), (4, 1), (5, 2), (20, 5), (40, 5)])
def test_a_quarter_of_the_rows_at_most_five_are_seeds(rows: int, seeds: int) -> None:
    # ⌈rows / 4⌉ up to 5; every row is linked to one of its own outside the others, which gains where the row is a seed
    partner = 100
    store = FakeStore(
        *(Memory(i) for i in range(1, rows + 1)),
        *(Memory(i + partner) for i in range(1, rows + 1)),
        edges=[Edge(i, i + partner) for i in range(1, rows + 1)],
    )
    params = CausalParams(seed_share=0.125)  # the partners are in the pool, behind all rows: half the share

    gain = evidence(
        Causal(params),
        ask(),
        pool_of(store, {**falling(rows), **{i + partner: 0.0 for i in range(1, rows + 1)}}),
        store,
    )

    assert [i - partner for i, value in gain.items() if value] == list(range(1, seeds + 1))


@pytest.mark.requirement("F11")
def test_the_strength_of_a_walk_is_clamped_and_the_best_seed_counts() -> None:
    store = FakeStore(
        *(Memory(i) for i in range(1, 9)),
        edges=[Edge(1, 3, "supports", 0.01), Edge(1, 4, "caused", 0.2), Edge(2, 4, "caused", 0.9)],
    )

    gain = evidence(Causal(CausalParams()), ask(), pool_of(store, falling(8)), store)

    # 0.01 counts as 0.1; of 0.2 and 0.9 the larger
    assert {i: gain[i] for i in (3, 4)} == pytest.approx({3: 0.005, 4: 0.045})


@pytest.mark.requirement("F11")
def test_all_passages_of_a_linked_memory_gain() -> None:
    store = FakeStore(Memory(1), Memory(2, chunks=("a", "b")), edges=[Edge(1, 2)])

    gain = evidence(Causal(CausalParams()), ask(), pool_of(store, {1: 0.9, 201: 0.5, 202: 0.4}), store)

    assert gain == pytest.approx({1: 0.0, 201: 0.05, 202: 0.05})


@pytest.mark.requirement("F11", "F13.together")
@pytest.mark.parametrize(("used", "score"), [(0.0, 0.55), (0.15, 0.55), (0.18, 0.52), (0.2, 0.5)])
def test_causal_and_session_together_add_at_most_a_fifth(used: float, score: float) -> None:
    store = FakeStore(*(Memory(i) for i in (1, 2)), edges=[Edge(1, 2)])
    pool = pool_of(store, {1: 0.9, 2: 0.5})

    after = applied(Causal(CausalParams()), ask(), pool, store, used=np.array([0.0, used]))

    # .05 for one hop, unless less is left of .20
    assert after == pytest.approx({1: 0.9, 2: score})


@pytest.mark.requirement("F11.relations")
@pytest.mark.parametrize(
    ("relation", "gain"),
    [
        ("supersedes", 0.06), ("contradicts", 0.032),  # .05 · .8 · 1.5 and .05 · .8 · .8
        ("caused", 0.04), ("enabled", 0.04), ("derived_from", 0.04), ("supports", 0.04),  # .05 · .8
    ],
)  # fmt: skip
def test_each_relation_carries_its_multiplier(relation: str, gain: float) -> None:
    store = FakeStore(Memory(1), Memory(2), edges=[Edge(1, 2, relation, 0.8)])

    assert evidence(Causal(CausalParams()), ask(), pool_of(store, {1: 0.9, 2: 0.5}), store) == pytest.approx(
        {1: 0.0, 2: gain}
    )


def test_without_edges_nothing_is_walked() -> None:
    store = FakeStore(Memory(1))

    assert evidence(Causal(CausalParams()), ask(), pool_of(store, {1: 0.9}), store) == {1: 0.0}


@pytest.mark.requirement("F14.window")
def test_memories_made_within_an_hour_support_each_other() -> None:
    made = {1: 0.0, 2: 0.5 * HOUR, 3: 0.75 * HOUR, 4: 3 * HOUR}
    store = FakeStore(*(Memory(i, numbers={"created_at": NOW - t}) for i, t in made.items()), Memory(5))
    pool = pool_of(store, dict.fromkeys(store.memories, 0.5))

    # pairs 1-2 (half an hour apart: 0.5), 1-3 (0.25), 2-3 (0.75), each · 0.15
    gain = evidence(Contiguity(ContiguityParams()), ask(), pool, store)
    assert gain == pytest.approx({1: 0.1125, 2: 0.1875, 3: 0.15, 4: 0.0, 5: 0.0})
    # the frame caps the sum of the pairs at 0.15
    after = applied(Contiguity(ContiguityParams()), ask(), pool, store)
    assert after == pytest.approx({1: 0.6125, 2: 0.65, 3: 0.65, 4: 0.5, 5: 0.5})


@pytest.mark.requirement("F14.gain")
@pytest.mark.parametrize(
    ("apart", "gain"),
    [
        (0.0, 0.15),
        (900.0, 0.1125),  # (1 - 900/3600) · .15 = .75 · .15
        (1800.0, 0.075),
        (3599.0, 0.15 / 3600),
        (3600.0, 0.0),
        (3601.0, 0.0),
    ],
)
def test_a_pair_gains_by_how_close_it_was_made(apart: float, gain: float) -> None:
    store = FakeStore(Memory(1, numbers={"created_at": NOW}), Memory(2, numbers={"created_at": NOW - apart}))
    pool = pool_of(store, {1: 0.5, 2: 0.5})

    assert evidence(Contiguity(ContiguityParams()), ask(), pool, store) == pytest.approx({1: gain, 2: gain})


@pytest.mark.requirement("F14.window")
def test_the_window_of_contiguity_ends_at_a_day() -> None:
    store = FakeStore(Memory(1, numbers={"created_at": NOW}), Memory(2, numbers={"created_at": NOW - 18 * HOUR}))
    pool = pool_of(store, {1: 0.5, 2: 0.5})

    # (1 - 18/24) · .15
    gain = evidence(Contiguity(ContiguityParams(window=24 * HOUR)), ask(), pool, store)
    assert gain == pytest.approx({1: 0.0375, 2: 0.0375})
    with pytest.raises(ValidationError):
        ContiguityParams(window=24 * HOUR + 1)


@pytest.mark.requirement("F14")
def test_passages_of_one_memory_are_no_pair() -> None:
    store = FakeStore(Memory(1, chunks=("a", "b"), numbers={"created_at": NOW}))

    gain = evidence(Contiguity(ContiguityParams()), ask(), pool_of(store, {101: 0.5, 102: 0.4}), store)

    assert gain == {101: 0.0, 102: 0.0}


@pytest.mark.requirement("F12.spread")
def test_activation_spreads_over_two_hops_and_hubs_share_it() -> None:
    store = FakeStore(
        Memory(1, chunks=("a a a b",)),
        Memory(2, chunks=("a a a",)),
        Memory(3, chunks=("b b b a",)),
        Memory(4, chunks=("b b b",)),
        Memory(5, chunks=("z",)),
    )
    signal = Coactivation(CoactivationParams(weight=1.0, seeds=1, min_similarity=0.55))

    # cosines: 1-2 = 3/√10 = .9487, 1-3 = 6/10 = .6, 3-4 = .9487, 1-4 = 1/√10 = .316 and 2-3 = .316 (too small)
    # 1 has two related memories: 2 gets .5 · .9487 / √2, 3 gets .5 · .6 / √2. Second hop: 3 has two related
    # memories (1 and 4): 4 gets (.3 / √2) · .5 · .9487 / √2; 1 gets .5 · .9487 of what 2 (one related) received
    second = 0.5 * 0.9486833 / math.sqrt(2)
    third = 0.3 / math.sqrt(2)
    expected = {1: second * 0.5 * 0.9486833, 2: second, 3: third, 4: third * second, 5: 0.0}
    gain = evidence(signal, ask(), pool_of(store, falling(5)), store)
    assert gain == pytest.approx(expected, abs=1e-6)


@pytest.mark.requirement("F12.spread")
@pytest.mark.parametrize(("related", "each", "last"), [(4, 0.0441942, 0.0441942), (6, 0.0395285, 0.0)])
def test_a_hub_shares_its_activation_by_the_root_of_its_fan_among_five(related: int, each: float, last: float) -> None:
    # "a x" resembles "a" with cosine 1/√2 = .7071, others of its kind with 1/2, which is below .70.
    # four related: .25 · .5 · .7071 / √4; of six the first five: .25 · .5 · .7071 / √5, the sixth gets nothing
    store = FakeStore(
        Memory(1, chunks=("a",)),
        *(Memory(i + 2, chunks=(f"a {letter}",)) for i, letter in enumerate("bcdefg"[:related])),
    )

    gain = evidence(Coactivation(CoactivationParams(seeds=1)), ask(), pool_of(store, falling(related + 1)), store)

    assert gain[2] == pytest.approx(each, abs=1e-6)
    assert gain[related + 1] == pytest.approx(last, abs=1e-6)
    # at two hops each of them, whose only relative it is, gives half of .7071 back: .25 · (gain / .25) · .5 · .7071
    assert gain[1] == pytest.approx(each * 0.5 * math.sqrt(0.5), abs=1e-6)


@pytest.mark.requirement("F12.related")
def test_memories_are_related_from_a_cosine_of_seven_tenths_on() -> None:
    # cosines with "a a a b b b b" (3, 4): "a" .6, "b" .8
    store = FakeStore(Memory(1, chunks=("a a a b b b b",)), Memory(2, chunks=("a",)), Memory(3, chunks=("b",)))

    gain = evidence(Coactivation(CoactivationParams(seeds=1, hops=1)), ask(), pool_of(store, falling(3)), store)

    # .25 · .5 · .8 / √1; the other's .6 is below .70
    assert gain == pytest.approx({1: 0.0, 2: 0.0, 3: 0.1})


@pytest.mark.requirement("F12.most")
def test_twenty_memories_are_activated_at_most() -> None:
    # 26 equal texts, each related to the 25 others by a cosine of 1: .25 · .5 · 1 / √25 = .025; of equal ones the first
    store = FakeStore(*(Memory(i, chunks=("a",)) for i in range(1, 27)))
    pool = pool_of(store, falling(26))

    gains = evidence(Coactivation(CoactivationParams(related=30)), ask(), pool, store)

    assert {i: gain for i, gain in gains.items() if gain} == pytest.approx(dict.fromkeys(range(1, 21), 0.025))


@pytest.mark.requirement("F12.related")
def test_only_the_most_activated_and_the_most_similar_count() -> None:
    store = FakeStore(Memory(1, chunks=("a b",)), Memory(2, chunks=("a b",)), Memory(3, chunks=("a b b",)))
    pool = pool_of(store, falling(3))

    one_related = Coactivation(CoactivationParams(seeds=1, hops=1, related=1))
    assert [i for i, g in evidence(one_related, ask(), pool, store).items() if g > 0] == [2]
    one_activated = Coactivation(CoactivationParams(seeds=1, hops=1, max_memories=1))
    assert [i for i, g in evidence(one_activated, ask(), pool, store).items() if g > 0] == [2]


def test_without_vectors_coactivation_is_unavailable() -> None:
    store = FakeStore(Memory(1))

    answer = Coactivation(CoactivationParams()).evidence(ask(), pool_of(store, {1: 0.5}), store)

    assert answer == Unavailable("the store holds no vectors")


@given(st.lists(st.text("ab", min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6))
def test_activation_never_exceeds_its_weight(texts: list[str]) -> None:
    store = FakeStore(*(Memory(i, chunks=(text,)) for i, text in enumerate(texts, start=1)))

    gains = evidence(Coactivation(CoactivationParams(weight=0.25)), ask(), pool_of(store, falling(len(texts))), store)

    assert all(0.0 <= gain <= 0.25 * 0.5 for gain in gains.values())


@pytest.mark.requirement("F16.parts")
def test_a_folder_scores_by_recency_importance_activity_and_validation() -> None:
    def memory(id_: int, folder: str, tier: str, age: float) -> Memory:
        return Memory(id_, folder=folder, tier=tier, numbers={"updated_at": NOW - age * DAY, "confidence": 0.5})

    store = FakeStore(
        memory(1, "live", "critical", 10),
        memory(2, "live", "normal", 90),
        memory(3, "old/z_archive", "critical", 10),
        memory(4, "old/z_archive", "normal", 90),
        memory(5, "", "critical", 0),
    )
    signal = FolderScore(FolderScoreParams(weight=1.0))

    # .4 · 1/(1 + .1 · 10) + .3 · (1 + .5)/2 + .2 · 2/5 + .1 · .5 = .2 + .225 + .08 + .05; archives count a tenth;
    # memory 2 was not found and still counts
    gain = evidence(signal, ask(), pool_of(store, {1: 0.5, 3: 0.5, 5: 0.5}), store)
    assert gain == pytest.approx({1: 0.555, 3: 0.0555, 5: 0.0})


@pytest.mark.requirement("F16.recency")
@pytest.mark.parametrize(("age", "recency"), [(0.0, 1.0), (7.0, 1 / 1.7), (10.0, 0.5), (90.0, 0.1)])
def test_the_recency_of_a_folder_is_that_of_its_latest_change(age: float, recency: float) -> None:
    # 1 / (1 + .1 · days), .59 after a week; the older memory of the folder plays no part
    store = FakeStore(
        *(Memory(i, folder="f", numbers={"updated_at": NOW - days * DAY}) for i, days in {1: age, 2: 900.0}.items())
    )
    alone = FolderScoreParams(weight=1.0, recency=1.0, importance=0.0, activity=0.0, validation=0.0)

    assert evidence(FolderScore(alone), ask(), pool_of(store, {1: 0.5}), store) == pytest.approx({1: recency})


@pytest.mark.requirement("F16", "F7")
@pytest.mark.parametrize(
    ("tiers", "importance"),
    [
        (("constitutional",), 1.0), (("critical",), 1.0), (("important",), 0.8), (("normal",), 0.5),
        (("temporary",), 0.3), (("deprecated",), 0.1),
        (("critical", "important", "temporary"), 0.7),  # (1 + .8 + .3) / 3
    ],
)  # fmt: skip
def test_the_importance_of_a_folder_is_the_mean_of_its_tiers(tiers: tuple[str, ...], importance: float) -> None:
    store = FakeStore(*(Memory(i, folder="f", tier=tier) for i, tier in enumerate(tiers, start=1)))
    alone = FolderScoreParams(weight=1.0, recency=0.0, importance=1.0, activity=0.0, validation=0.0)

    assert evidence(FolderScore(alone), ask(), pool_of(store, {1: 0.5}), store) == pytest.approx({1: importance})


@pytest.mark.requirement("F16.activity")
@pytest.mark.parametrize(("members", "activity"), [(1, 0.2), (4, 0.8), (5, 1.0), (9, 1.0)])
def test_a_folder_is_fully_active_with_five_memories(members: int, activity: float) -> None:
    store = FakeStore(*(Memory(i, folder="f") for i in range(1, members + 1)))
    alone = FolderScoreParams(weight=1.0, recency=0.0, importance=0.0, activity=1.0, validation=0.0)

    assert evidence(FolderScore(alone), ask(), pool_of(store, {1: 0.5}), store) == pytest.approx({1: activity})


@pytest.mark.requirement("F16.archives")
@pytest.mark.parametrize(
    ("folder", "factor"),
    [
        ("z_archive/old", 0.1), ("specs/z_archive", 0.1), ("specs/scratch", 0.2), ("test-runs/one", 0.2),
        ("app/test-data", 0.2), ("prototype", 0.2), ("specs/prototypes", 1.0), ("archive", 1.0), ("scratchpad", 1.0),
    ],
)  # fmt: skip
def test_what_is_put_away_is_lowered(folder: str, factor: float) -> None:
    store = FakeStore(Memory(1, folder=folder))
    alone = FolderScoreParams(weight=1.0, recency=0.0, importance=0.0, activity=0.0, validation=1.0)

    # nobody validated: .5, multiplied
    assert evidence(FolderScore(alone), ask(), pool_of(store, {1: 0.5}), store) == pytest.approx({1: 0.5 * factor})


@pytest.mark.requirement("F16.damped")
def test_the_damped_sum_of_what_was_found_is_relative_to_the_best_folder() -> None:
    store = FakeStore(
        Memory(1, folder="a"),
        Memory(2, folder="a", chunks=("x", "y")),
        Memory(3, folder="b"),
        Memory(4, folder=""),
    )
    pool = pool_of(store, {1: 0.6, 201: 0.5, 202: 0.9, 3: 0.8, 4: 1.0})

    gain = evidence(FolderScore(FolderScoreParams(weight=0.1, form="damped_sum")), ask(), pool, store)

    # a: (.6 + .9) / √3 = .8660; b: .8 / √2 = .5657; memories outside all folders count for none
    assert gain == pytest.approx(
        {1: 0.1, 201: 0.1, 202: 0.1, 3: 0.1 * 0.8 / math.sqrt(2) / (1.5 / math.sqrt(3)), 4: 0.0}
    )
