from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from answered import present
from components.asking import query, scores

from speckit_memory.channels.vector import Vector, VectorParams
from speckit_memory.pipeline.arithmetic import standardise
from speckit_memory.pipeline.model.columns import Plan
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter, Unavailable
from speckit_memory.pipeline.roles.contracts import PipelineContext
from speckit_memory.pipeline.testing import FakeStore, Memory

# One axis per word: "a b" against "a" has the cosine 1/√2.
STORE = FakeStore(
    Memory(1, "", ("a",)),
    Memory(2, "", ("a b", "c")),
    Memory(3, "", ("b b b a",)),
    Memory(4, "", ("a",), tier="deprecated"),
)


def vector(**params: Any) -> Vector:
    return Vector(VectorParams.model_validate(params))


@pytest.mark.requirement("C1")
def test_memories_score_as_their_best_passage() -> None:
    found = present(vector(min_similarity=0.1).search(query("a"), 10, STORE))

    # 3 is (1, 3)/√10.
    assert scores(found) == pytest.approx({1: 1.0, 2: 0.707107, 3: 0.316228}, abs=1e-6)
    assert found.passages is not None
    assert found.passages.tolist() == [1, 201, 3]
    assert found.scale is Scale.COSINE


def test_passages_are_found_one_by_one_at_level_chunk() -> None:
    found = present(vector(level="chunk", min_similarity=0.5).search(query("c a"), 10, STORE))

    # "c a" is (1, 1)/√2: half of the norm lies on each word; "a b" shares one of two.
    assert scores(found) == pytest.approx({1: 0.707107, 202: 0.707107, 201: 0.5}, abs=1e-6)
    assert found.level == "chunk"


@pytest.mark.requirement("C1.minimum")
def test_nothing_below_the_minimal_similarity_is_found() -> None:
    assert present(vector(min_similarity=0.5).search(query("a"), 10, STORE)).ids.tolist() == [1, 2]


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    ("params", "rest"),
    [
        ({}, 0.0),
        ({"min_similarity": 0.6}, 0.6),
        ({"min_similarity": 0.6, "context": 0.2}, 0.5),
        ({"min_similarity": -0.5}, -0.5),
        ({"min_similarity": -1.0}, np.nan),  # all vectors are found, so that the rest have none
    ],
)
def test_what_was_not_found_lies_below_the_minimal_similarity(params: dict[str, float], rest: float) -> None:
    assert present(vector(**params).search(query("a"), 10, STORE)).rest == pytest.approx(rest, nan_ok=True)


@pytest.mark.requirement("C14")
def test_the_plan_may_relax_the_minimal_similarity() -> None:
    relaxed = query("a", plan=Plan(variants=("a",), min_similarity=0.3))

    assert present(vector(min_similarity=0.5).search(relaxed, 10, STORE)).ids.tolist() == [1, 2, 3]
    # a channel that asks for less than the relaxed similarity goes on asking for that
    higher = query("a", plan=Plan(variants=("a",), min_similarity=0.4))
    assert present(vector(min_similarity=0.3).search(higher, 10, STORE)).ids.tolist() == [1, 2, 3]


@pytest.mark.requirement("C1.concepts")
def test_every_concept_must_match_and_the_mean_counts() -> None:
    asked = query("", concepts=("a", "b"))

    found = present(vector(min_similarity=0.2).search(asked, 10, STORE))

    # 1 lacks b. 2: (1/√2 + 1/√2)/2; 3: (1/√10 + 3/√10)/2.
    assert scores(found) == pytest.approx({2: 0.707107, 3: 0.632456}, abs=1e-6)


@pytest.mark.requirement("C1")
def test_a_text_beside_the_concepts_ranks_what_they_admit() -> None:
    found = present(vector(min_similarity=0.2).search(query("b", concepts=("a", "b")), 10, STORE))

    # 1 lacks b; 3 is mostly about it: 3/√10, and 2 half: 1/√2
    assert found.ids.tolist() == [3, 2]
    assert scores(found) == pytest.approx({3: 0.948683, 2: 0.707107}, abs=1e-6)
    # the words of the concepts themselves are no text of the asker's
    alone = present(vector(min_similarity=0.2).search(query("a b", concepts=("a", "b")), 10, STORE))
    assert scores(alone) == pytest.approx({2: 0.707107, 3: 0.632456}, abs=1e-6)


def test_the_limit_does_not_hide_what_a_second_concept_favours() -> None:
    found = present(vector(min_similarity=0.2).search(query("", concepts=("a", "b")), 1, STORE))

    assert found.ids.tolist() == [2]


def test_a_filter_narrows_the_search_before_the_limit() -> None:
    store = FakeStore(Memory(1, "", ("a",)), Memory(2, "", ("a b",), folder="here"))

    assert present(vector().search(query("a", wanted=Filter(folder="here")), 1, store)).ids.tolist() == [2]


@pytest.mark.requirement("C1.filters")
def test_folder_tier_and_kind_narrow_the_search() -> None:
    store = FakeStore(
        Memory(1, "", ("a",), folder="docs"),
        Memory(2, "", ("a",), folder="docs/deep", tier="critical"),
        Memory(3, "", ("a",), folder="docs-old", context_type="decision"),
    )

    filters = (Filter(), Filter(folder="docs"), Filter(tier="critical"), Filter(context_type="decision"))
    found = [present(vector().search(query("a", wanted=wanted), 10, store)).ids.tolist() for wanted in filters]
    assert found == [[1, 2, 3], [1, 2], [2], [3]]


@pytest.mark.requirement("C1.concepts")
def test_five_concepts_must_all_reach_the_minimal_similarity() -> None:
    store = FakeStore(Memory(1, "", ("a b c d e",)), Memory(2, "", ("a b c d",)), Memory(3, "", ("a a b c d e",)))

    found = present(vector(min_similarity=0.3).search(query("", concepts=("a", "b", "c", "d", "e")), 10, store))

    # 1: 1/√5 for each; 2 lacks e; 3 is (2, 1, 1, 1, 1)/√8: the mean of 2/√8 and four times 1/√8 = .3536 is 6/(5√8)
    assert scores(found) == pytest.approx({1: 0.447214, 3: 0.424264}, abs=1e-6)


def test_unknown_words_find_nothing() -> None:
    assert len(present(vector().search(query("zebra"), 10, STORE))) == 0
    assert len(present(vector().search(query("", concepts=("a", "zebra")), 10, STORE))) == 0


def test_a_missing_model_and_an_empty_store_are_expected_absences() -> None:
    silent = FakeStore(Memory(1, "", ("a",)), no_embedder="the model files are missing")

    assert vector().search(query("a"), 10, silent) == Unavailable("the model files are missing")
    assert vector().search(query("", concepts=("a", "b")), 10, silent) == Unavailable("the model files are missing")
    assert isinstance(vector().search(query("a"), 10, FakeStore()), Unavailable)


def test_hits_are_in_total_order() -> None:
    found = present(vector().search(query("a"), 10, FakeStore(*(Memory(i, "", ("a",)) for i in (5, 2, 9)))))

    assert found.ids.tolist() == [2, 5, 9]
    assert np.allclose(found.scores, 1.0)


TALK = [
    Memory(number, "", (text,), folder="talk", numbers={"characters": 10.0})
    for number, text in enumerate(("a", "b", "c", "a b"), 1)
]


@pytest.mark.requirement("C1")
def test_a_note_adds_its_share_of_the_better_neighbours_own_cosine() -> None:
    found = present(vector(context=0.2).search(query("a"), 10, FakeStore(*TALK)))

    # own cosines 1, 0, 0, 1/√2; neighbours 1-2-3-4; everything divided by 1.2
    expected = {1: 1.0 / 1.2, 4: 0.707107 / 1.2, 2: 0.2 / 1.2, 3: 0.141421 / 1.2}
    assert scores(found) == pytest.approx(expected, abs=1e-6)
    assert found.passages is not None
    assert found.passages.tolist() == [1, 4, 2, 3]


def test_neighbours_of_what_was_found_compete_for_the_limit_and_keep_to_the_scope() -> None:
    # 1 is nearest; its neighbour 2 gains 0.9 · 1 and passes 4, which a search for the nearest two would have returned.
    assert present(vector(context=0.9).search(query("a"), 2, FakeStore(*TALK))).ids.tolist() == [1, 2]

    hidden = [*TALK]
    hidden[1] = Memory(2, "", ("b",), folder="talk", tier="deprecated", numbers={"characters": 10.0})
    assert present(vector(context=0.9).search(query("a"), 2, FakeStore(*hidden))).ids.tolist() == [1, 4]


def test_a_neighbour_that_the_query_may_not_see_adds_nothing() -> None:
    def talk(first: Memory) -> FakeStore:
        return FakeStore(first, *TALK[1:])

    hidden: dict[str, Any] = {"folder": "talk", "tier": "deprecated", "numbers": {"characters": 10.0}}
    expired: dict[str, Any] = {"folder": "talk", "numbers": {"characters": 10.0, "expires_at": -1.0}}
    filtered: dict[str, Any] = {"folder": "talk", "tier": "important", "numbers": {"characters": 10.0}}

    # 4 has 1/√2 of its own and lends a share of it to 3; 1, next to 2, is as near as can be and out of sight
    expected = pytest.approx({4: 0.707107 / 1.2, 3: 0.2 * 0.707107 / 1.2, 2: 0.0}, abs=1e-6)
    for first, wanted in ((hidden, Filter()), (expired, Filter()), (filtered, Filter(tier="normal"))):
        store = talk(Memory(1, "", ("a",), **first))
        assert scores(present(vector(context=0.2).search(query("a", wanted=wanted), 10, store))) == expected


@pytest.mark.parametrize("concepts", [(), ("a", "b")])
@pytest.mark.parametrize("context", [0.2, 1.0])
def test_scores_with_context_stay_cosines_and_keep_order_and_standard_score(
    context: float, concepts: tuple[str, ...]
) -> None:
    texts = ("a", "a", "b", "a b", "a c c", "b c", "a b")
    numbers = {"characters": 10.0}
    linked = [Memory(i, "", (text,), folder="talk", numbers=numbers) for i, text in enumerate(texts, 1)]
    store = FakeStore(*linked, Memory(20, "", ("a a b",)), Memory(21, "", ("c",)))
    asked = query("" if concepts else "a", concepts=concepts)
    plain = vector(min_similarity=-1.0)
    lone = [scores(present(plain.search(query(word), 20, store))) for word in concepts or ("a",)]

    found = present(vector(min_similarity=-1.0, context=context).search(asked, 20, store))

    def undivided(id_: int) -> float:
        return float(np.mean([of[id_] + context * max(beside(id_, of)) for of in lone]))

    def beside(id_: int, of: dict[int, float]) -> list[float]:
        return [0.0, *(of[other] for other in (id_ - 1, id_ + 1) if id_ <= 7 and 1 <= other <= 7)]

    sums = np.array([undivided(i) for i in found.ids.tolist()])
    assert found.scores.max() <= 1.0
    assert np.all(np.diff(sums) <= 2e-6)
    assert found.scores == pytest.approx(sums / (1.0 + context), abs=2e-6)
    assert standardise(found.scores) == pytest.approx(standardise(sums), abs=1e-5)


def test_context_divides_the_scores_of_memories_without_neighbours_too() -> None:
    found = present(vector(context=0.2).search(query("a"), 10, FakeStore(Memory(1, "", ("a",)))))

    assert scores(found) == pytest.approx({1: 1.0 / 1.2}, abs=1e-6)


def test_context_is_refused_at_level_chunk() -> None:
    here = PipelineContext(channels=("vector",), scales=(Scale.COSINE,), steps=("vector",), uses=("vector",))
    problems = list(Vector.check(VectorParams(level="chunk", context=0.2), here))

    assert problems == [(("context",), "passages have no neighbours; use level memory or context 0")]


def test_a_store_without_neighbours_answers_on_the_same_scale() -> None:
    alone = FakeStore(Memory(1, "", ("a",)), Memory(2, "", ("a b",)))

    assert scores(present(vector(context=0.25).search(query("a"), 10, alone))) == pytest.approx(
        {1: 0.8, 2: 0.565685}, abs=1e-6
    )
