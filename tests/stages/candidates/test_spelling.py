from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.testing import FakeStore, Memory, ask
from speckit_memory.stages.candidates.spelling import Spelling, SpellingParams

STORE = FakeStore(
    Memory(1, "", ("retrieval of passages",)),
    Memory(2, "Retrieval", ("other",)),
    Memory(3, "", ("passage", "configuration")),
    Memory(4, "", ("zanzibar",), path="crossroads"),
)


def planned(text: str, store: FakeStore = STORE, **params: Any) -> Query:
    query = ask(text)
    plan = Spelling(SpellingParams.model_validate(params)).understand(query, query.plan, store)
    assert isinstance(plan, Plan)
    return query.planned(plan)


def respelt(text: str, store: FakeStore = STORE, **params: Any) -> dict[str, dict[str, float]]:
    return {found.word: dict(found.instead) for found in planned(text, store, **params).plan.respelt}


@pytest.mark.parametrize("typed", ["retreival", "retrieva", "retrievall", "retriexal", "Retreival"])
def test_a_word_that_nothing_holds_is_searched_as_its_neighbour_one_edit_away(typed: str) -> None:
    query = planned(f"{typed} of")

    assert query.terms == ("retrieval", "of")
    assert query.weight("retrieval") == 0.8
    assert query.weight("of") == 1.0
    assert query.reading == "retrieval of"
    assert query.text == f"{typed} of"
    assert query.plan.reasons == (f"spelling: '{typed}' as retrieval",)


def test_two_edits_are_bridged_in_long_words_where_one_edit_finds_nothing() -> None:
    assert respelt("confuggiratioon") == {}
    assert respelt("konfiguratiom") == {"konfiguratiom": {"configuration": pytest.approx(0.64)}}
    assert respelt("konfiguratiom", min_length_far=14) == {}
    assert respelt("konfiguratiom", min_length_far=13) == respelt("konfiguratiom")


def test_words_of_titles_and_paths_are_known_too() -> None:
    assert respelt("crossroads") == {}
    assert respelt("crosroads") == {"crosroads": {"crossroads": 0.8}}


@pytest.mark.parametrize(
    "text",
    [
        "passages", "retrieval",  # known
        "pasag",  # three edits
        "zanz",  # too short
        "zanzibr_x", "zanzibr-7", "./zanzibr", "zanzibr.md", "v1zanzibar",  # parts of names
    ],
)  # fmt: skip
def test_what_is_known_far_short_or_a_name_is_left_alone(text: str) -> None:
    query = planned(text)

    assert (query.plan.respelt, query.terms, query.reading) == ((), ask(text).terms, text)


def test_a_word_that_is_no_term_of_the_query_is_left_alone() -> None:
    query = Query("about zanzibar", now=0.0, terms=("zanzibar",), plan=Plan(variants=("about zanzibar",)))

    plan = Spelling(SpellingParams()).understand(query, query.plan, FakeStore(Memory(1, "", ("abouts zanzibar",))))

    assert plan == query.plan


def test_the_most_frequent_of_many_neighbours_stand_for_a_word() -> None:
    texts = ("stone", "stone store", "stole", "store shore", "stove", "store")
    store = FakeStore(*(Memory(number, "", (text,)) for number, text in enumerate(texts, 1)))

    assert respelt("stoxe", store, discount=0.7) == {"stoxe": {"store": 0.7, "stone": 0.7, "stole": 0.7, "stove": 0.7}}
    assert respelt("stoxe", store, neighbours=2) == {"stoxe": {"store": 0.8, "stone": 0.8}}


def test_what_is_pasted_is_not_corrected() -> None:
    assert respelt("retreival " + "of " * 19) != {}
    assert respelt("retreival " + "of " * 20) == {}


def test_only_the_first_unknown_words_of_a_query_are_looked_at() -> None:
    assert [*respelt("retreival pasage zanzibr", max_unknown_words=2)] == ["retreival", "pasage"]
    assert [*respelt("nothinglikeit zanzibar pasage zanzibr", max_unknown_words=2)] == ["pasage"]


def test_words_of_other_alphabets_have_neighbours_too() -> None:
    store = FakeStore(Memory(1, "", ("библиотека данных",)), Memory(2, "", ("größenordnung",)))

    assert respelt("библеотека", store) == {"библеотека": {"библиотека": 0.8}}
    assert respelt("grössenordnung", store) == {}  # the same to the case folding that both went through
    assert respelt("größenordnumg", store) == {"größenordnumg": {"grössenordnung": 0.8}}


def test_a_wording_of_the_query_is_corrected_like_the_query() -> None:
    query = planned("retreival")

    assert query.planned(query.plan).terms == ("retrieval",)


@given(st.sampled_from(["retrieval", "passages", "configuration", "zanzibar"]), st.data())
def test_every_single_edit_finds_the_word_again(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(word) - 1))
    letter = data.draw(st.sampled_from("abcxyz"))
    typed = data.draw(
        st.sampled_from(
            [
                word[:place] + letter + word[place:],
                word[:place] + word[place + 1 :],
                word[:place] + letter + word[place + 1 :],
                word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :],
            ]
        )
    )

    found = planned(typed)

    assert OSA.distance(typed, word) <= 1
    assert word in found.terms or set(found.terms) & set(STORE.lexicon.words())
