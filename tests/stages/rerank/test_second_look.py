"""Rerankers that read query and passages again: MaxSim and the cross-encoder."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from components.pools import rerank, scores_of
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.columns import Pool
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Unavailable
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, pool_of
from speckit_memory.stages.rerank.cross_encoder import CrossEncoder, CrossEncoderParams
from speckit_memory.stages.rerank.encoder import Encoder, EncoderParams
from speckit_memory.stages.rerank.maxsim import Maxsim, MaxsimParams


def store_of(*texts: str, **options: Any) -> FakeStore:
    return FakeStore(*(Memory(i, chunks=(text,)) for i, text in enumerate(texts, start=1)), **options)


def z_pool(store: FakeStore, scores: dict[int, float]) -> Pool:
    return pool_of(store, scores, scale=Scale.Z_SCORE)


@pytest.mark.requirement("R1.model")
def test_what_meets_the_rare_words_of_the_query_gains() -> None:
    store = store_of("common rare", "common new", "common", "common other")
    pool = z_pool(store, {2: 0.9, 1: 0.8, 3: 0.7, 4: 0.1})

    after = rerank(Maxsim(MaxsimParams(pool=3, gain=3.0)), ask("common rare new"), pool, store)

    # "common" stands in every passage: its weight is log(4/4) = 0. "rare" and "new" weigh the same, so MaxSim is
    # 1/2, 1/2 and 0 for 1, 2 and 3, with mean 1/3; 4 was not read: it stands 1 below the lowest row that was
    expected = {2: 0.9 + 0.5, 1: 0.8 + 0.5, 3: 0.7 - 1.0, 4: -1.3}
    assert scores_of(after) == pytest.approx(expected, abs=1e-5)


@pytest.mark.requirement("R1")
def test_words_weigh_by_the_chosen_power_of_idf() -> None:
    store = store_of("twice", "once twice", "none", "none")
    pool = z_pool(store, {1: 0.0, 2: 0.0})

    def gap(power: float) -> float:
        after = scores_of(rerank(Maxsim(MaxsimParams(gain=1.0, idf_power=power)), ask("once twice"), pool, store))
        return after[2] - after[1]

    # weights log(4) and log(2), that is 2 : 1; passage 1 lacks "once"
    assert gap(1.0) == pytest.approx(2 / 3, abs=1e-5)
    assert gap(0.5) == pytest.approx(math.sqrt(2) / (math.sqrt(2) + 1), abs=1e-5)
    assert gap(0.0) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.requirement("R1")
def test_a_query_whose_first_row_leads_clearly_gets_no_second_look() -> None:
    store = store_of("a", "b", "a", "b")
    pool = z_pool(store, {1: 0.9, 2: 0.4, 3: 0.3})

    # the lead is .9 - .4 = .5; "b" stands in the second row alone
    settled = rerank(Maxsim(MaxsimParams(max_lead=0.5)), ask("b"), pool, store)
    open_ = rerank(Maxsim(MaxsimParams(max_lead=0.51)), ask("b"), pool, store)

    assert scores_of(settled) == scores_of(pool)
    assert open_.ids.tolist()[0] == 2


@pytest.mark.requirement("R1")
def test_a_stop_word_weighs_nothing_even_where_all_other_words_weigh_the_same() -> None:
    store = store_of("common rare", "common", "common new")
    pool = z_pool(store, {1: 0.0, 2: 0.0})

    after = rerank(Maxsim(MaxsimParams(gain=1.0, idf_power=0.0)), ask("common rare"), pool, store)

    # "common" stands in every passage: idf log(3/3) = 0, and 0 to the power 0 would be 1. MaxSim 1 and 0, mean 1/2
    assert scores_of(after) == pytest.approx({1: 0.5, 2: -0.5}, abs=1e-5)


@pytest.mark.requirement("R1")
def test_rows_that_were_not_read_keep_their_distances() -> None:
    store = store_of("a", "b", "a", "b")
    pool = z_pool(store, {1: 0.9, 2: 0.8, 3: 0.5, 4: 0.2})

    after = scores_of(rerank(Maxsim(MaxsimParams(pool=2)), ask("a"), pool, store))

    assert after[3] - after[4] == pytest.approx(0.3)
    assert after[3] == pytest.approx(min(after[1], after[2]) - 1.0)


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("text", ["", "unheard of"])
def test_a_query_without_known_words_keeps_the_scores(text: str) -> None:
    store = store_of("a", "b")

    after = rerank(Maxsim(MaxsimParams()), ask(text), z_pool(store, {2: 0.9, 1: 0.1}), store)

    assert scores_of(after) == {2: 0.9, 1: 0.1}


@pytest.mark.requirement("R1")
def test_when_all_words_are_stop_words_they_count_alike() -> None:
    store = store_of("a b", "a b c")

    # both words of the query stand in both passages: both weigh 0, hence 1 each, and both passages meet both
    after = rerank(Maxsim(MaxsimParams()), ask("a b"), z_pool(store, {1: 0.1, 2: 0.9}), store)
    assert scores_of(after) == {2: 0.9, 1: 0.1}


def test_a_passage_without_words_meets_nothing() -> None:
    store = store_of("a", "", "b")

    after = rerank(Maxsim(MaxsimParams(gain=3.0)), ask("a"), z_pool(store, {2: 0.9, 1: 0.5, 3: 0.9}), store)

    # MaxSim 1, 0, 0: mean 1/3
    assert scores_of(after) == pytest.approx({1: 2.5, 2: -0.1, 3: -0.1}, abs=1e-5)


@given(st.lists(st.text("abc", max_size=3).map(" ".join), min_size=1, max_size=8), st.text("abcd", max_size=3))
def test_every_row_gets_a_finite_score_and_unread_rows_stay_below(texts: list[str], text: str) -> None:
    store = store_of(*texts)
    pool = z_pool(store, {i: 1.0 / i for i in store.memories})

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


@pytest.mark.requirement("R1.lengths")
@pytest.mark.parametrize(("length", "relevance"), [(49, 0.72), (50, 0.8), (2000, 0.8), (2001, 0.76)])
def test_what_is_too_short_or_too_long_counts_less(length: int, relevance: float) -> None:
    text = "x" * length

    # .8 · .9 below 50 characters, .8 · .95 above 2000
    store = store_of(text, relevance={text: 0.8})
    after = rerank(CrossEncoder(CrossEncoderParams()), ask("q"), pool_of(store, {1: 0.5}), store)
    assert scores_of(after) == pytest.approx({1: relevance})


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


@pytest.mark.requirement("R1.encoder")
def test_a_row_gains_by_how_near_an_encoder_takes_it_to_be_among_the_rows_looked_at() -> None:
    memories = [Memory(1, chunks=("a", "b")), *(Memory(id_, chunks=("c",)) for id_ in (2, 3, 4, 5))]
    store = FakeStore(*memories, closeness={1: 0.4, 2: 0.8, 4: 0.6, 5: 1.0})
    pool = z_pool(store, {1: 0.9, 2: 0.5, 3: 0.5, 4: 0.1, 5: 0.0})

    step = Encoder(EncoderParams(pool=4, weight=0.5, passage_weight=0.2))
    after = scores_of(rerank(step, ask("a"), pool, store))

    # 0.4, 0.8 and 0.6 have the mean 0.6 and the deviation √(0.08/3): z is -√1.5, √1.5 and 0, and 0 for 3, which has no
    # vector. The scores deviate by √(0.32/4). 1 is long and would fall by 0.2 · √0.08 · √1.5, which lifts all four; 5
    # was not looked at
    one = math.sqrt(0.08) * math.sqrt(1.5)
    assert after == pytest.approx({1: 0.9, 2: 0.5 + 0.7 * one, 3: 0.5 + 0.2 * one, 4: 0.1 + 0.2 * one, 5: 0.0})


@pytest.mark.requirement("R1.encoder")
@pytest.mark.parametrize("closeness", [None, {}])
def test_without_an_encoder_or_a_vector_nothing_changes(closeness: dict[int, float] | None) -> None:
    store = store_of("a", "b", closeness=closeness)
    pool = z_pool(store, {1: 0.9, 2: 0.4})

    assert scores_of(rerank(Encoder(EncoderParams()), ask("a"), pool, store)) == scores_of(pool)
