"""Rerankers that read query and passages again: MaxSim and the cross-encoder."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ports import Unavailable
from pipeline.scales import Scale
from stages.rerank.cross_encoder import CrossEncoder, CrossEncoderParams
from stages.rerank.maxsim import Maxsim, MaxsimParams
from tests.components.fake_store import FakeStore, Memory
from tests.components.pools import ask, pool_of, rerank, scores_of


def store_of(*texts: str, **options: object) -> FakeStore:
    return FakeStore(*(Memory(i, chunks=(text,)) for i, text in enumerate(texts, start=1)), **options)


@pytest.mark.requirement("R1")
def test_late_interaction_blends_with_the_score_on_the_best_rows() -> None:
    store = store_of("common rare", "common", "common", "common other")
    pool = pool_of(store, {2: 0.9, 1: 0.8, 3: 0.7, 4: 0.1})

    after = rerank(Maxsim(MaxsimParams(pool=3, weight=0.4)), ask("common rare"), pool, store)

    # "common" stands in every passage: its weight is log(4/4) = 0; only 1 holds "rare", so MaxSim is 1, 0, 0 with mean
    # 1/3 and deviation √2/3: z = √2 and twice -1/√2. Scores .9 .8 .7: z = ±√(3/2) and 0
    z, low = math.sqrt(1.5), -1 / math.sqrt(2)
    expected = {1: 0.4 * math.sqrt(2), 2: 0.6 * z + 0.4 * low, 3: -0.6 * z + 0.4 * low}
    assert {i: s for i, s in scores_of(after).items() if i != 4} == pytest.approx(expected)
    # 4 was not read: it stands 1 below the lowest row that was
    assert scores_of(after)[4] == pytest.approx(expected[3] - 1.0)
    assert after.scale is Scale.Z_SCORE


@pytest.mark.requirement("R1")
def test_rows_that_were_not_read_keep_their_distances() -> None:
    store = store_of("a", "b", "a", "b")
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.5, 4: 0.2})

    after = scores_of(rerank(Maxsim(MaxsimParams(pool=2)), ask("a"), pool, store))

    assert after[3] - after[4] == pytest.approx(0.3)
    assert after[3] < min(after[1], after[2])


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("text", ["", "unheard of"])
def test_a_query_without_known_words_keeps_the_order(text: str) -> None:
    store = store_of("a", "b")

    after = rerank(Maxsim(MaxsimParams()), ask(text), pool_of(store, {2: 0.9, 1: 0.1}), store)

    assert after.ids.tolist() == [2, 1]


@pytest.mark.requirement("R1")
def test_when_all_words_are_stop_words_they_count_alike() -> None:
    store = store_of("a b", "a b c")

    # both words of the query stand in both passages: weight 0, so both count 1; the order does not change
    after = rerank(Maxsim(MaxsimParams(weight=1.0)), ask("a b"), pool_of(store, {1: 0.1, 2: 0.9}), store)
    assert scores_of(after) == {1: 0.0, 2: 0.0}


def test_a_passage_without_words_is_met_by_nothing() -> None:
    store = store_of("a", "", "b")

    after = rerank(Maxsim(MaxsimParams(weight=1.0)), ask("a"), pool_of(store, {2: 0.9, 1: 0.5, 3: 0.4}), store)

    assert after.ids.tolist() == [1, 2, 3]
    assert scores_of(after)[2] == scores_of(after)[3]


@given(st.lists(st.text("abc", max_size=3).map(" ".join), min_size=1, max_size=8), st.text("abcd", max_size=3))
def test_every_row_gets_a_finite_score_and_unread_rows_stay_below(texts: list[str], text: str) -> None:
    store = store_of(*texts)
    pool = pool_of(store, {i: 1.0 / i for i in store.memories})

    after = rerank(Maxsim(MaxsimParams(pool=3)), ask(" ".join(text)), pool, store)

    assert np.all(np.isfinite(after.score))
    assert set(after.ids[:3].tolist()) == set(pool.ids[:3].tolist())
    assert after.ids[3:].tolist() == pool.ids[3:].tolist()


SHORT, FINE, LONG = "s" * 49, "f" * 50, "l" * 2001


@pytest.mark.requirement("R1")
def test_relevance_replaces_the_score_and_lengths_cost() -> None:
    store = store_of(SHORT, FINE, LONG, "not read", relevance={SHORT: 0.5, FINE: 0.4, LONG: 1.0})
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6})

    after = rerank(CrossEncoder(CrossEncoderParams()), ask("q"), pool, store)

    # .5 · .9, .4, 1 · .95; what was not read: its score · the lowest relevance read, .6 · .4
    assert scores_of(after) == pytest.approx({3: 0.95, 1: 0.45, 2: 0.4, 4: 0.24})


@pytest.mark.requirement("R1", "P9")
def test_without_a_model_or_time_the_scores_stay() -> None:
    encoder = CrossEncoder(CrossEncoderParams())
    pool = pool_of(store_of("a"), {1: 0.9})

    assert encoder.rerank(ask(), pool, store_of("a")) == Unavailable("no cross-encoder is configured")
    late = encoder.rerank(ask(), pool, store_of("a", relevance={}))
    assert late == Unavailable("the deadline left no time to read a passage")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=8))
def test_rows_that_were_read_stand_above_the_others_in_order_of_relevance(rows: list[tuple[float, float]]) -> None:
    texts = [f"{i:060d}" for i in range(len(rows))]
    store = store_of(*texts, relevance={t: r for t, (_, r) in zip(texts, rows, strict=True)})
    pool = pool_of(store, {i: score for i, (score, _) in enumerate(rows, start=1)})

    after = rerank(CrossEncoder(CrossEncoderParams(pool=2)), ask("q"), pool, store)

    relevance = {i: rows[i - 1][1] for i in pool.ids[:2].tolist()}
    scores = scores_of(after)
    assert {i: scores[i] for i in relevance} == pytest.approx(relevance)
    assert all(scores[i] <= min(relevance.values()) + 1e-12 for i in scores if i not in relevance)
