"""Rerankers that look at the whole list: MMR, context diversity, regularisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from components.pools import rerank, scores_of
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.ports import Unavailable
from speckit_memory.pipeline.testing import Edge, FakeStore, Memory, ask, pool_of
from speckit_memory.stages.rerank.context_diversity import ContextDiversity, ContextDiversityParams
from speckit_memory.stages.rerank.mmr import Mmr, MmrParams
from speckit_memory.stages.rerank.regularise import Regularise, RegulariseParams


def store_of(*texts: str) -> FakeStore:
    return FakeStore(*(Memory(i, chunks=(text,)) for i, text in enumerate(texts, start=1)))


@pytest.mark.requirement("R2")
def test_a_repetition_stands_below_a_less_relevant_novelty() -> None:
    store = store_of("a b", "a b", "c d", "a c")
    pool = pool_of(store, {1: 1.0, 2: 0.9, 3: 0.6, 4: 0.5})

    after = rerank(Mmr(MmrParams.model_validate({"lambda": 0.5})), ask(), pool, store)

    # 1 first: .5. Then 3: .3 - 0, against 2: .45 - .5 and 4: .25 - .25. Then 4: its similarity to 3 is .5 as well,
    # .25 - .25 = 0; last 2: .45 - .5
    assert scores_of(after) == pytest.approx({1: 0.5, 3: 0.3, 4: 0.0, 2: -0.05}, abs=1e-6)


@pytest.mark.requirement("R2.pool")
def test_twenty_rows_are_diversified_and_the_next_one_is_not() -> None:
    # 21 rows without a word in common: a diversified row scores .7 · relevance, what lies below .7 · relevance - .3
    store = store_of(*(f"word{i}" for i in range(21)))
    pool = pool_of(store, {i: 1.0 - i / 100 for i in store.memories})

    after = scores_of(rerank(Mmr(MmrParams()), ask(), pool, store))

    assert after == pytest.approx({i: 0.7 * (1.0 - i / 100) - 0.3 * (i == 21) for i in store.memories})


@pytest.mark.requirement("R2.intent")
def test_the_intent_chooses_lambda_when_it_is_sure() -> None:
    store = store_of("a", "b")
    pool = pool_of(store, {1: 1.0, 2: 0.5})
    mmr = Mmr(MmrParams.model_validate({"lambda": "by_intent"}))

    def best(**plan: Any) -> float:
        return float(rerank(mmr, ask(**plan), pool, store).score[0])

    by_intent = {
        "add_feature": 0.70, "fix_bug": 0.85, "refactor": 0.60, "security_audit": 0.75, "understand": 0.50,
        "find_spec": 0.50, "find_decision": 0.50,
    }  # fmt: skip
    for intent, weight in by_intent.items():  # the best row has nothing above it: λ · 1
        assert best(plan_intent=intent, plan_intent_confidence=0.9) == pytest.approx(weight)
    assert best(plan_intent="fix_bug", plan_intent_confidence=0.2) == pytest.approx(0.7)
    assert best(plan_intent="something new", plan_intent_confidence=0.9) == pytest.approx(0.7)


@pytest.mark.requirement("R2")
def test_the_matched_passage_is_compared_not_the_whole_memory() -> None:
    store = FakeStore(Memory(1, chunks=("a",)), Memory(2, chunks=("a", "z")))

    # passage 202 shares nothing with memory 1
    after = rerank(Mmr(MmrParams.model_validate({"lambda": 0.5})), ask(), pool_of(store, {1: 1.0, 202: 0.8}), store)
    assert scores_of(after) == pytest.approx({1: 0.5, 202: 0.4})


@pytest.mark.requirement("R2")
def test_rows_without_vectors_stay() -> None:
    store = store_of("a", "", "a")

    after = rerank(
        Mmr(MmrParams.model_validate({"lambda": 0.5})), ask(), pool_of(store, {1: 1.0, 2: 0.5, 3: 0.9}), store
    )

    assert scores_of(after) == pytest.approx({1: 0.5, 2: 0.25, 3: -0.05})


def test_without_any_vectors_mmr_is_unavailable_but_a_single_row_needs_none() -> None:
    store = store_of("", "")
    mmr = Mmr(MmrParams())

    assert mmr.rerank(ask(), pool_of(store, {1: 1.0, 2: 0.5}), store) == Unavailable("the store holds no vectors")
    assert scores_of(rerank(mmr, ask(), pool_of(store, {2: 0.5}), store)) == pytest.approx({2: 0.35})


@pytest.mark.requirement("R2")
@given(
    st.lists(st.tuples(st.floats(0, 1), st.text("abc", max_size=3).map(" ".join)), min_size=1, max_size=10),
    st.floats(0, 1),
)
def test_selection_order_is_score_order_and_rows_below_the_pool_stay_below(
    rows: list[tuple[float, str]], weight: float
) -> None:
    store = store_of(*(text for _, text in rows), "always a vector")
    pool = pool_of(store, {i: score for i, (score, _) in enumerate(rows, start=1)})

    after = rerank(Mmr(MmrParams.model_validate({"lambda": weight, "pool": 4})), ask(), pool, store)

    selected, below = set(pool.ids[:4].tolist()), pool.ids[4:].tolist()
    lowest = min(scores_of(after)[i] for i in selected)
    assert all(scores_of(after)[i] <= lowest + 1e-12 for i in below)
    # replaying the greedy selection over the returned order finds the same values
    vectors = store.vectors.vectors(after.ids).astype(np.float64)
    relevance = scores_of(pool)
    taken: list[int] = []
    for row, (id_, value) in enumerate(scores_of(after).items()):
        if id_ in selected:
            worst = max((round(float(np.clip(vectors[row] @ vectors[t], 0, 1)), 7) for t in taken), default=0.0)
            assert value == pytest.approx(weight * relevance[id_] - (1 - weight) * worst, abs=1e-6)
            taken.append(row)


@pytest.mark.requirement("R7.half")
def test_an_unseen_region_is_preferred_above_half_of_the_next_best_score() -> None:
    store = FakeStore(*(Memory(i) for i in range(1, 6)), edges=[Edge(1, 2), Edge(2, 3)])
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.5, 5: 0.3})

    after = rerank(ContextDiversity(ContextDiversityParams()), ask(), pool, store)

    # 1, 2 and 3 are one region: 4 (.5 > .4) takes the second place; 5 (.3 < .4, and < .35 later) has to wait
    assert after.ids.tolist() == [1, 4, 2, 3, 5]
    assert list(scores_of(after).values()) == pytest.approx([0.9, 0.8, 0.7, 0.5, 0.3])


@pytest.mark.requirement("R7.half")
@pytest.mark.parametrize(("fresh", "ids"), [(0.41, [1, 3, 2]), (0.4, [1, 2, 3])])
def test_half_of_the_next_best_score_itself_is_not_enough(fresh: float, ids: list[int]) -> None:
    # 2 lies in the region of 1; 3 needs more than .5 · .8
    store = FakeStore(*(Memory(i) for i in range(1, 4)), edges=[Edge(1, 2)])
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: fresh})

    assert rerank(ContextDiversity(ContextDiversityParams()), ask(), pool, store).ids.tolist() == ids


@pytest.mark.requirement("R7")
def test_every_memory_without_links_is_a_region_of_its_own() -> None:
    store = FakeStore(*(Memory(i) for i in range(1, 5)), edges=[Edge(3, 4)])
    pool = pool_of(store, {1: 0.9, 2: 0.8, 3: 0.7})

    after = rerank(ContextDiversity(ContextDiversityParams()), ask(), pool, store)

    assert scores_of(after) == {1: 0.9, 2: 0.8, 3: 0.7}


@pytest.mark.requirement("R7")
def test_without_edges_nothing_moves() -> None:
    store = store_of("a", "b")
    pool = pool_of(store, {1: 0.9, 2: 0.8})

    assert scores_of(rerank(ContextDiversity(ContextDiversityParams()), ask(), pool, store)) == {1: 0.9, 2: 0.8}


def test_scores_move_towards_those_of_similar_passages() -> None:
    store = store_of("a b", "a b", "a c", "z")
    pool = pool_of(store, {1: 1.0, 2: 0.4, 3: 0.2, 4: 0.3})

    after = rerank(Regularise(RegulariseParams(weight=0.5, neighbours=2)), ask(), pool, store)

    # cosines: 1-2 = 1, 1-3 = 2-3 = .5; 4 resembles nothing
    expected = {
        1: 0.5 * 1.0 + 0.5 * (1.0 * 0.4 + 0.5 * 0.2) / 1.5,
        2: 0.5 * 0.4 + 0.5 * (1.0 * 1.0 + 0.5 * 0.2) / 1.5,
        3: 0.5 * 0.2 + 0.5 * (0.5 * 1.0 + 0.5 * 0.4) / 1.0,
        4: 0.3,
    }
    assert scores_of(after) == pytest.approx(expected, abs=1e-6)
    # with one neighbour each, 1 and 2 have each other, and 3 has both: they tie
    after = rerank(Regularise(RegulariseParams(weight=0.5, neighbours=1)), ask(), pool, store)
    assert scores_of(after) == pytest.approx({1: 0.7, 2: 0.7, 3: 0.1 + 0.5 * 0.7, 4: 0.3}, abs=1e-6)


@pytest.mark.requirement("R1")
def test_what_points_the_other_way_does_not_speak_against_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of("a", "b", "c")
    directions = {1: (1.0, 0.0), 2: (0.8, 0.6), 3: (-1.0, 0.0)}
    monkeypatch.setattr(
        store.vectors, "vectors", lambda ids: np.array([directions[i] for i in ids.tolist()], np.float32)
    )
    pool = pool_of(store, {1: 1.0, 2: 0.4, 3: 0.2})

    after = rerank(Regularise(RegulariseParams(weight=0.5)), ask(), pool, store)

    # cosines: 1-2 = .8, 1-3 = -1, 2-3 = -.8; the negative ones count 0, so that 3 resembles nothing
    expected = {1: 0.5 * 1.0 + 0.5 * 0.4, 2: 0.5 * 0.4 + 0.5 * 1.0, 3: 0.2}
    assert scores_of(after) == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.tuples(st.floats(0, 1), st.text("abc", max_size=3).map(" ".join)), min_size=1, max_size=8))
def test_regularised_scores_stay_between_the_lowest_and_the_highest(rows: list[tuple[float, str]]) -> None:
    store = store_of(*(text for _, text in rows), "always a vector")
    pool = pool_of(store, {i: score for i, (score, _) in enumerate(rows, start=1)})

    after = rerank(Regularise(RegulariseParams()), ask(), pool, store).score

    assert pool.score.min() - 1e-9 <= after.min()
    assert after.max() <= pool.score.max() + 1e-9


def test_without_vectors_regularisation_is_unavailable() -> None:
    store = store_of("")

    answer = Regularise(RegulariseParams()).rerank(ask(), pool_of(store, {1: 1.0}), store)

    assert answer == Unavailable("the store holds no vectors")
