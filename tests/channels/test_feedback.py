from __future__ import annotations

from dataclasses import replace
from math import log, log2
from typing import Any

import pytest
from components.asking import query, scores
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.channels._feedback import Feedback, with_feedback
from speckit_memory.channels.bm25 import Bm25, Bm25Params
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.testing import FakeStore, Memory, words

BODY = {"title": 0.0, "triggers": 0.0, "path": 0.0, "body": 1.0}
FOUR = FakeStore(
    Memory(1, "", ("alpha beta",)),
    Memory(2, "", ("alpha beta",)),
    Memory(3, "", ("beta gamma",)),
    Memory(4, "", ("gamma delta",)),
)
"""Texts of one length without repeated words: tf·(k1 + 1)/(tf + norm) is 1, so that each word found scores its idf."""

ALPHA, BETA = log(2.5 / 2.5 + 1), log(1.5 / 3.5 + 1)
"""The idf of words in 2 and in 3 of 4 texts."""


def bm25(model: str = "rm3", *, passage: float = 0.0, **feedback: Any) -> Bm25:
    fields = BODY if not passage else {**BODY, "body": 0.0}
    told = {"model": model, "min_lead": 0.0, **feedback}
    return Bm25(Bm25Params.model_validate({"fields": fields, "passage": passage, "feedback": told}))


def simple(asked: Query) -> Query:
    return replace(asked, plan=replace(asked.plan, complexity="simple"))


@pytest.mark.requirement("C12")
def test_rm3_mixes_the_query_with_what_the_first_hits_say() -> None:
    # First hits 1 and 2, equal scores, both "alpha beta": P(alpha | hits) = P(beta | hits) = 0.5.
    # Weights: alpha 0.6 · 1 + 0.4 · 0.5 = 0.8, beta 0.4 · 0.5 = 0.2.
    found = bm25(weight=0.4).search(query("alpha"), 10, FOUR)

    best = round(0.8 * ALPHA + 0.2 * BETA, 6)
    assert scores(found) == {1: best, 2: best, 3: round(0.2 * BETA, 6)}


@pytest.mark.requirement("C12")
def test_rm3_believes_a_hit_by_its_score_and_each_of_its_words_by_its_share_of_the_text() -> None:
    # Texts of 2, 4 and 2 words, mean 8/3; alpha is in two of three: idf = log(1.5/2.5 + 1).
    # norm = 1.2 · (.25 + .75 · length/mean): .975 for 2 words, 1.65 for 4. Scores a/1.975 and a/2.65, a = 2.2 · idf.
    store = FakeStore(
        Memory(1, "", ("alpha beta",)),
        Memory(2, "", ("alpha gamma gamma gamma",)),
        Memory(3, "", ("beta gamma",)),
    )
    first, second = 1 / 1.975, 1 / 2.65
    told = {"alpha": first / 2 + second / 4, "beta": first / 2, "gamma": second * 3 / 4}
    hits = bm25("none").search(query("alpha"), 10, store)

    weights = with_feedback(Feedback(model="rm3", weight=0.4), {"alpha": 1.0}, hits, store)

    total = sum(told.values())
    assert weights == pytest.approx(
        {
            "alpha": 0.6 + 0.4 * told["alpha"] / total,
            "beta": 0.4 * told["beta"] / total,
            "gamma": 0.4 * told["gamma"] / total,
        }
    )


@pytest.mark.requirement("C12")
def test_bo1_weighs_a_word_by_how_much_oftener_than_by_chance_the_first_hits_have_it() -> None:
    # alpha: tf 2, mean 2/4; beta: tf 2, mean 3/4. The best, alpha, adds 0.4 to the 1 of a word of the query.
    alpha, beta = 2 * log2(1.5 / 0.5) + log2(1.5), 2 * log2(1.75 / 0.75) + log2(1.75)
    own, told = 1.4, 0.4 * beta / alpha

    found = bm25("bo1", weight=0.4).search(query("alpha"), 10, FOUR)

    best = round((own * ALPHA + told * BETA) / (own + told), 6)
    assert scores(found) == {1: best, 2: best, 3: round(told * BETA / (own + told), 6)}


@pytest.mark.requirement("C12")
@pytest.mark.parametrize("model", ["rm3", "bo1"])
def test_queries_judged_simple_are_left_alone(model: str) -> None:
    found = bm25(model).search(simple(query("alpha")), 10, FOUR)

    assert scores(found) == {1: round(ALPHA, 6), 2: round(ALPHA, 6)}


@pytest.mark.requirement("C12")
def test_first_hits_have_a_say_only_when_one_is_clearly_ahead() -> None:
    # Two words score 2a, one word a: the first is ahead by half of its score.
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("alpha gamma",)), Memory(3, "", ("beta gamma",)))
    asked = query("alpha beta")
    plain = bm25("none").search(asked, 10, store)

    assert plain.scores[1] == plain.scores[0] / 2
    assert scores(bm25(min_lead=0.51).search(asked, 10, store)) == scores(plain)
    assert scores(bm25(min_lead=0.5).search(asked, 10, store)) != scores(plain)


def test_the_only_hit_is_ahead_of_all_others() -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("beta gamma",)))

    assert bm25(min_lead=1.0).search(query("alpha"), 10, store).ids.tolist() == [1, 2]


def test_without_hits_there_is_no_feedback() -> None:
    assert len(bm25().search(query("omega"), 10, FOUR)) == 0


def test_words_of_one_memory_alone_are_not_searched() -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("alpha gamma",)), Memory(3, "", ("delta",)))
    hits = bm25("none").search(query("alpha"), 10, store)

    assert with_feedback(Feedback(model="rm3", min_lead=0.0), {"alpha": 1.0}, hits, store) == {"alpha": 1.0}


def test_first_hits_without_a_word_that_others_share_change_nothing() -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("gamma",)))
    hits = bm25("none").search(query("alpha"), 10, store)

    assert with_feedback(Feedback(model="rm3", min_lead=0.0), {"alpha": 1.0}, hits, store) is None
    assert scores(bm25().search(query("alpha"), 10, store)) == scores(hits)


def test_a_hit_speaks_with_its_title_and_its_matched_passage() -> None:
    # beta, gamma and delta are in two memories each; delta is not in the passage that matched.
    store = FakeStore(
        Memory(1, "gamma", ("delta", "alpha beta")),
        Memory(2, "", ("beta gamma",)),
        Memory(3, "", ("delta gamma",)),
    )
    hits = bm25("none", passage=1.0).search(query("alpha"), 10, store)

    weights = with_feedback(Feedback(model="rm3", min_lead=0.0), {"alpha": 1.0}, hits, store)

    assert weights is not None
    assert sorted(weights) == ["alpha", "beta", "gamma"]


def test_only_the_first_hits_and_their_best_words_are_used() -> None:
    # 1 comes before 2 and 3, being shorter. Of its words beta and gamma are equally frequent; beta comes first.
    store = FakeStore(
        Memory(1, "", ("alpha beta gamma",)),
        Memory(2, "", ("alpha delta delta delta",)),
        Memory(3, "", ("alpha delta beta gamma",)),
    )
    hits = bm25("none").search(query("alpha"), 10, store)

    assert hits.ids.tolist()[0] == 1
    one = with_feedback(Feedback(model="rm3", min_lead=0.0, documents=1, terms=2), {"alpha": 1.0}, hits, store)
    assert one is not None
    assert sorted(one) == ["alpha", "beta"]


def test_what_the_query_may_not_see_has_no_say() -> None:
    hidden = [Memory(number, "", ("alpha omega",), tier="deprecated") for number in (5, 6)]
    shown = [*FOUR.memories.values(), Memory(7, "", ("omega gamma",))]

    found = bm25().search(query("alpha", wanted=Filter()), 10, FakeStore(*hidden, *shown))

    assert 7 not in found.ids


TEXTS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), min_size=1, max_size=6).map(" ".join)


@pytest.mark.requirement("C12")
@given(st.lists(TEXTS, min_size=2, max_size=6), TEXTS, st.sampled_from(["rm3", "bo1"]), st.floats(0, 1))
def test_the_weights_are_positive_and_add_up_to_the_number_of_words(
    texts: list[str], text: str, model: str, weight: float
) -> None:
    store = FakeStore(*(Memory(number, "", (held,)) for number, held in enumerate(texts, 1)))
    asked = dict.fromkeys(words(text), 1.0)
    hits = bm25("none").search(query(text), 10, store)

    feedback = Feedback.model_validate({"model": model, "weight": weight, "min_lead": 0.0})
    weights = with_feedback(feedback, asked, hits, store)

    if weights is not None:
        assert sum(weights.values()) == pytest.approx(len(asked))
        assert min(weights.values()) > 0
