"""Rerankers that rescore, group and select, without looking at texts."""

from __future__ import annotations

import math
from random import Random
from typing import Literal

import numpy as np
import pytest
from components.pools import rerank, scores_of
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import NoParams, PipelineContext
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, pool_of
from speckit_memory.stages.rerank._places import by_place
from speckit_memory.stages.rerank.collapse import Collapse, CollapseParams
from speckit_memory.stages.rerank.confidence_cut import ConfidenceCut, ConfidenceCutParams
from speckit_memory.stages.rerank.min_max import MinMax
from speckit_memory.stages.rerank.pin import Pin, PinParams
from speckit_memory.stages.rerank.relevance_floor import RelevanceFloor, RelevanceFloorParams
from speckit_memory.stages.rerank.standardise import Standardise

units = st.floats(0, 1, allow_subnormal=False)


def plain(count: int) -> FakeStore:
    return FakeStore(*(Memory(i) for i in range(1, count + 1)))


@pytest.mark.requirement("F4.min_max")
def test_min_max_maps_to_the_unit_interval() -> None:
    store = plain(3)

    after = rerank(MinMax(NoParams()), ask(), pool_of(store, {1: -2.0, 2: 6.0, 3: 0.0}, scale=Scale.Z_SCORE), store)

    assert scores_of(after) == {2: 1.0, 3: 0.25, 1: 0.0}
    assert after.scale is Scale.UNIT


@pytest.mark.requirement("F4.equal")
def test_equal_scores_and_a_single_one_become_one() -> None:
    store = plain(2)

    assert scores_of(rerank(MinMax(NoParams()), ask(), pool_of(store, {1: 0.3, 2: 0.3}), store)) == {1: 1.0, 2: 1.0}
    assert scores_of(rerank(MinMax(NoParams()), ask(), pool_of(store, {2: 0.0}), store)) == {2: 1.0}


@pytest.mark.requirement("F4")
def test_standard_scores_have_mean_zero_and_deviation_one() -> None:
    store = plain(3)

    # mean 2, deviation √(8/3)
    after = rerank(Standardise(NoParams()), ask(), pool_of(store, {1: 0.0, 2: 4.0, 3: 2.0}, scale=Scale.BM25), store)
    assert scores_of(after) == pytest.approx({2: math.sqrt(1.5), 3: 0.0, 1: -math.sqrt(1.5)})
    assert after.scale is Scale.Z_SCORE


CHUNKED = (Memory(1, chunks=("a", "b", "c")), Memory(2), Memory(3, chunks=("d", "e")))
PASSAGES = {101: 0.5, 102: 0.8, 103: 0.8, 2: 0.9, 301: 0.2, 302: 0.6}


@pytest.mark.requirement("R4", "R3.formula")
def test_a_memory_scores_as_its_best_passage_plus_a_damped_bonus_for_the_others() -> None:
    store = FakeStore(*CHUNKED)

    after = rerank(Collapse(CollapseParams()), ask(), pool_of(store, PASSAGES), store)

    # 1: .8 + .3 · (.8 + .5) / √2, one of the two equal maxima counts as rest; 2: alone; 3: .6 + .3 · .2 / 1
    expected = {1: 0.8 + 0.39 / math.sqrt(2), 2: 0.9, 3: 0.66}
    assert scores_of(after) == pytest.approx(expected)
    assert after.ids.tolist() == [1, 2, 3]
    assert after.candidates.passages.tolist() == [102, 2, 302]
    assert after.chunk_hits.tolist() == [3, 1, 2]
    assert after.scale is Scale.BOOST


@pytest.mark.requirement("R3.formula", "R3.instance")
@pytest.mark.parametrize(("passages", "expected"), [
    ([0.7], 0.7),  # a single passage: no bonus, and no division by the root of nothing
    ([0.8, 0.4], 0.92),  # .8 + .3 · .4 / √1
    ([0.5, 0.5], 0.65),  # one instance of the maximum is left out, not both: .5 + .3 · .5 / √1
    ([0.9, *[0.6] * 4], 1.26),  # .9 + .3 · 2.4 / √4
    ([1.0, *[0.5] * 9], 1.45),  # ten passages: 1 + .3 · 4.5 / √9
])  # fmt: skip
def test_the_bonus_grows_with_the_root_of_the_number_of_passages(passages: list[float], expected: float) -> None:
    store = FakeStore(Memory(1, chunks=("x",) * len(passages)))
    pool = pool_of(store, dict(zip(store.memories[1].chunk_ids, passages, strict=True)))

    after = rerank(Collapse(CollapseParams()), ask(), pool, store)

    assert scores_of(after) == pytest.approx({1: expected})
    assert after.chunk_hits.tolist() == [len(passages)]


@pytest.mark.requirement("R3")
@pytest.mark.parametrize(("aggregate", "expected"), [
    ("max", {2: 0.9, 1: 0.8, 3: 0.6}),
    ("mean_top3", {2: 0.9, 1: 0.7, 3: 0.4}),
])  # fmt: skip
def test_other_aggregates(aggregate: Literal["max", "mean_top3"], expected: dict[int, float]) -> None:
    store = FakeStore(*CHUNKED)

    after = rerank(Collapse(CollapseParams(aggregate=aggregate)), ask(), pool_of(store, PASSAGES), store)

    assert scores_of(after) == pytest.approx(expected)


@pytest.mark.requirement("R3.few")
def test_an_empty_pool_collapses_to_nothing() -> None:
    store = plain(1)

    assert len(rerank(Collapse(CollapseParams()), ask(), pool_of(store, {}), store)) == 0


@pytest.mark.requirement("R3", "R4")
@given(st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=6), min_size=1, max_size=5))
def test_a_further_passage_never_lowers_a_memory(scores: list[list[float]]) -> None:
    store = FakeStore(*(Memory(i, chunks=("x",) * len(s)) for i, s in enumerate(scores, start=1)))
    ids = {i: store.memories[i].chunk_ids for i in store.memories}
    pool = pool_of(
        store,
        {chunk: s for i, of in enumerate(scores, start=1) for chunk, s in zip(ids[i], of, strict=True)},
        scale=Scale.Z_SCORE,
    )

    after = scores_of(rerank(Collapse(CollapseParams()), ask(), pool, store))

    assert set(after) == set(store.memories)
    assert all(after[i] >= max(of) for i, of in enumerate(scores, start=1))


@pytest.mark.requirement("R6.gap")
def test_the_list_ends_at_the_first_cliff_behind_the_third_row() -> None:
    store = plain(7)
    scores = {1: 1.0, 2: 0.6, 3: 0.59, 4: 0.58, 5: 0.3, 6: 0.29, 7: 0.1}

    # gaps .4 .01 .01 .28 .01 .19: median (.01 + .19) / 2 = .1; .28 > .2 is the first cliff from the third gap on
    after = rerank(ConfidenceCut(ConfidenceCutParams()), ask(), pool_of(store, scores), store)
    assert after.ids.tolist() == [1, 2, 3, 4]


@pytest.mark.requirement("R6.gap")
@pytest.mark.parametrize(
    ("gaps", "left"),
    [
        # binary fractions, so that the gaps are exact; the median of four is the mean of the middle two
        ([1, 1, 2, 1], 5),  # median 1: a gap of twice the median is no cliff
        ([1, 1, 3, 1], 3),  # median 1: 3 > 2 at the third gap, the first that counts
        ([1, 9, 1, 1], 5),  # the second gap is ahead of the third row
        ([1, 1, 1, 3], 4),  # at the fourth
        ([0, 0, 5, 1], 3),  # median .5
        ([0, 0, 0, 5], 5),  # median 0: no cut
    ],
)
def test_a_cliff_is_more_than_twice_the_median_gap(gaps: list[int], left: int) -> None:
    store = plain(5)
    scores = 1.0 - np.cumsum([0, *gaps]) / 64

    pool = pool_of(store, dict(enumerate(scores.tolist(), start=1)))
    assert len(rerank(ConfidenceCut(ConfidenceCutParams()), ask(), pool, store)) == left


@pytest.mark.requirement("R6.zero")
@pytest.mark.parametrize("scores", [
    [1.0, 0.1, 0.05],  # three rows always stay
    [0.5, 0.5, 0.5, 0.5, 0.1],  # the median gap is zero
    [0.9, 0.8, 0.7, 0.6, 0.4001],  # no gap above twice the median
    [0.9],
    [],
])  # fmt: skip
def test_without_a_cliff_nothing_is_cut(scores: list[float]) -> None:
    store = plain(5)
    pool = pool_of(store, dict(enumerate(scores, start=1)))

    assert len(rerank(ConfidenceCut(ConfidenceCutParams()), ask(), pool, store)) == len(scores)


@pytest.mark.requirement("R6", "C6")
def test_constitutional_rows_are_neither_cut_nor_part_of_the_reckoning() -> None:
    store = FakeStore(
        *(Memory(i) for i in range(1, 6)),
        Memory(8, tier="constitutional"),
        Memory(9, tier="constitutional"),
    )
    pool = pool_of(store, {8: 5.0, 1: 0.9, 2: 0.8, 3: 0.7, 4: 0.1, 5: 0.05, 9: 0.0}, scale=Scale.BOOST)

    after = rerank(ConfidenceCut(ConfidenceCutParams()), ask(), pool, store)

    # gaps of the others: .1 .1 .6 .05
    assert after.ids.tolist() == [8, 1, 2, 3, 9]


@given(st.lists(units, max_size=30))
def test_at_least_three_rows_stay_and_only_a_tail_is_cut(scores: list[float]) -> None:
    store = plain(30)
    pool = pool_of(store, dict(enumerate(scores, start=1)))

    after = rerank(ConfidenceCut(ConfidenceCutParams()), ask(), pool, store)

    assert len(after) >= min(3, len(scores))
    assert after.ids.tolist() == pool.ids.tolist()[: len(after)]


@pytest.mark.requirement("C6")
def test_constitutional_memories_are_lifted_above_the_best_and_keep_their_order() -> None:
    store = FakeStore(Memory(1), Memory(2), Memory(3, tier="constitutional"), Memory(4, tier="constitutional"))
    pool = pool_of(store, {1: 0.9, 2: 0.5, 3: 0.2, 4: 0.1})

    # the lift is .9 - .1 + 1 = 1.8
    after = rerank(Pin(PinParams()), ask(), pool, store)
    assert scores_of(after) == pytest.approx({3: 2.0, 4: 1.9, 1: 0.9, 2: 0.5})
    assert rerank(Pin(PinParams()), ask(), after, store).score == pytest.approx(after.score)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(("limit", "first"), [(20, 5), (10, 5), (6, 3), (2, 1), (1, 1)])
def test_no_more_than_five_and_half_of_the_limit_are_lifted_and_those_that_suit_best(limit: int, first: int) -> None:
    store = FakeStore(*(Memory(i, tier="constitutional" if i <= 12 else "normal") for i in range(1, 15)))
    pool = pool_of(store, {**{i: i / 100 for i in range(1, 13)}, 13: 0.9, 14: 0.055})

    order = rerank(Pin(PinParams()), ask(limit=limit), pool, store).ids.tolist()

    assert order[:first] == list(range(12, 12 - first, -1))
    assert order[first] == 13
    assert order[first + 1 :] == [i for i in pool.ids.tolist() if i not in order[: first + 1]]


@pytest.mark.requirement("C3")
def test_what_a_channel_found_can_be_lifted() -> None:
    store = FakeStore(Memory(1), Memory(2), Memory(3, tier="constitutional"))
    found = {"bm25": [1, 2, 3], "identifier": [2]}
    pool = pool_of(store, {1: 0.9, 2: 0.5, 3: 0.2}, found=found)
    pin = Pin(PinParams(tiers=[], channels=["identifier"]))

    # the lift is .9 - .5 + 1 = 1.4
    assert scores_of(rerank(pin, ask(), pool, store)) == pytest.approx({2: 1.9, 1: 0.9, 3: 0.2})
    assert scores_of(rerank(pin, ask(), pool_of(store, {1: 0.9, 2: 0.5}), store)) == {1: 0.9, 2: 0.5}


@pytest.mark.requirement("C6")
@given(st.lists(st.tuples(st.integers(-500, 500), st.booleans()), max_size=12))
def test_pinned_rows_come_first_and_nobody_else_moves(rows: list[tuple[int, bool]]) -> None:
    store = FakeStore(*(Memory(i, tier="constitutional" if p else "normal") for i, (_, p) in enumerate(rows)))
    pool = pool_of(store, {i: score / 100 for i, (score, _) in enumerate(rows)}, scale=Scale.Z_SCORE)

    after = rerank(Pin(PinParams(max_memories=12)), ask(limit=24), pool, store).ids.tolist()

    before = pool.ids.tolist()
    assert after == [i for i in before if rows[i][1]] + [i for i in before if not rows[i][1]]


def test_rows_that_a_channel_scores_too_low_are_left_out() -> None:
    store = FakeStore(Memory(1), Memory(2), Memory(3), Memory(4, tier="constitutional"))
    pool = pool_of(
        store,
        {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6},
        found={"bm25": [1, 2, 3], "vector": [2, 1, 4]},
        raw={"bm25": {1: 9.0, 2: 8.0, 3: 7.0}, "vector": {1: 0.1, 2: 0.4, 4: 0.05}},
    )

    assert rerank(RelevanceFloor(RelevanceFloorParams(min_score=0.3)), ask(), pool, store).ids.tolist() == [2, 3, 4]
    strict = RelevanceFloor(RelevanceFloorParams(min_score=0.3, keep_unscored=False, ignore_tiers=[]))
    assert rerank(strict, ask(), pool, store).ids.tolist() == [2]


def test_a_floor_on_a_channel_that_does_not_exist_is_reported() -> None:
    context = PipelineContext(("bm25", "graph"), (None, None), (), ())

    problems = list(RelevanceFloor.check(RelevanceFloorParams(), context))

    assert problems == [(("channel",), "no channel is called 'vector'; there are bm25, graph")]
    assert list(RelevanceFloor.check(RelevanceFloorParams(channel="bm25"), context)) == []


@given(st.lists(units, max_size=20), st.randoms(use_true_random=False))
def test_scores_by_place_put_rows_into_the_order_chosen(scores: list[float], random: Random) -> None:
    column = np.array(sorted(scores, reverse=True))
    order = np.array(random.sample(range(len(scores)), len(scores)), np.intp)

    placed = by_place(column, order).scores

    assert np.argsort(-placed, kind="stable").tolist() == order.tolist()
    assert placed[order] == pytest.approx(column, abs=1e-10)
