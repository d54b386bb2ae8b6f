from __future__ import annotations

import pytest
from components.pools import rerank, scores_of
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.columns import Pool
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, pool_of
from speckit_memory.stages.rerank.channel_floor import ChannelFloor, ChannelFloorParams


def plain(count: int) -> FakeStore:
    return FakeStore(*(Memory(i) for i in range(1, count + 1)))


@pytest.mark.requirement("R5")
def test_the_best_row_of_an_unseen_channel_takes_the_last_place_that_can_be_spared() -> None:
    store = plain(5)
    scores = {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.5, 5: 0.4}
    pool = pool_of(store, scores, found={"vector": [1, 2], "bm25": [3], "graph": [4, 5]})

    after = rerank(ChannelFloor(ChannelFloorParams(top=3)), ask(), pool, store)

    # 3 is all that bm25 has, so 2 gives way to 4; each row has the score of its place
    assert after.ids.tolist() == [1, 3, 4, 2, 5]
    assert list(scores_of(after).values()) == pytest.approx([0.9, 0.8, 0.7, 0.5, 0.4])


@pytest.mark.requirement("R5")
@pytest.mark.parametrize("found", [
    {"vector": [1, 2, 3], "graph": [4]},  # the best row of graph scores too little
    {"vector": [1, 2, 3, 4], "graph": []},  # graph found nothing
    {"vector": [1], "bm25": [2], "fts5": [3], "graph": [4]},  # no place can be spared
    {"vector": [1, 2, 3, 4], "graph": [3, 4]},  # graph is seen by a row that both found
])  # fmt: skip
def test_nothing_moves_without_reason(found: dict[str, list[int]]) -> None:
    store = plain(4)
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.19}, found=found)

    after = rerank(ChannelFloor(ChannelFloorParams(top=3)), ask(), pool, store)

    assert scores_of(after) == scores_of(pool)


@pytest.mark.requirement("R5.kept")
@pytest.mark.parametrize(("best", "ids"), [(0.2, [1, 2, 4]), (0.1999, [1, 2, 3])])
def test_a_channel_is_promoted_from_a_best_score_of_a_fifth_on(best: float, ids: list[int]) -> None:
    store = plain(4)
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.7, 4: best}, found={"vector": [1, 2, 3], "graph": [4]})

    assert rerank(ChannelFloor(ChannelFloorParams(top=3)), ask(), pool, store).ids.tolist()[:3] == ids


@pytest.mark.requirement("R5")
def test_every_unseen_channel_is_promoted_the_better_one_first() -> None:
    store = plain(6)
    found = {"vector": [1, 2, 3, 4], "bm25": [6], "graph": [5]}
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6, 5: 0.4, 6: 0.3}, found=found)

    # of the first three places two are given up: 3 and 2; each row takes the score of its place
    after = rerank(ChannelFloor(ChannelFloorParams(top=3)), ask(), pool, store)
    assert after.ids.tolist() == [1, 5, 6, 2, 3, 4]
    assert list(scores_of(after).values()) == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.4, 0.3])


Drawn = tuple[FakeStore, Pool, dict[str, list[int]]]
"""A store, a pool of it and what each channel found."""


@st.composite
def pools(draw: st.DrawFn) -> Drawn:
    count = draw(st.integers(1, 12))
    store = plain(count)
    scores = {i: draw(st.floats(0, 1)) for i in store.memories}
    found = {c: draw(st.lists(st.sampled_from(list(scores)), unique=True)) for c in ("vector", "bm25", "graph")}
    return store, pool_of(store, scores, found=found), found


@pytest.mark.requirement("R5")
@given(pools(), st.integers(3, 6))
def test_every_channel_with_a_good_row_is_seen_and_no_row_is_lost(drawn: Drawn, top: int) -> None:
    store, pool, found = drawn
    score = scores_of(pool)

    after = rerank(ChannelFloor(ChannelFloorParams(top=top)), ask(), pool, store).ids.tolist()

    assert sorted(after) == sorted(score)
    for hits in found.values():
        if hits and max(score[i] for i in hits) >= 0.2:
            assert set(hits) & set(after[:top])
