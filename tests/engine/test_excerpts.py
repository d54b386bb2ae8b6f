"""The part of a passage that is shown for a question."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.engine.answers.excerpts import MOST_WORDS, _piece, _places, excerpt, readable

FILLER = "Entries stay close to whoever reads them. " * 10


def shown(text: str, words: list[str], characters: int) -> str:
    return excerpt(readable(text), words, characters)


def test_an_excerpt_that_reaches_the_end_of_the_text_keeps_the_last_word() -> None:
    # the window of 60 characters begins inside the long word, where no blank moves its beginning, and so its end
    assert shown("some " + "x" * 80 + " and a zebra", ["zebra"], 60).endswith("x and a zebra")


@pytest.mark.requirement("T24.kept")
def test_words_that_stand_far_apart_are_shown_in_two_pieces_in_their_order() -> None:
    text = f"{FILLER}The quokka sleeps.{FILLER}Wallabies and numbats jump.{FILLER}"
    pieces = shown(text, ["quokka", "wallabi", "numbat"], 120).split("\n")
    assert len(pieces) == 2
    assert "quokka" in pieces[0]
    assert "Wallabies and numbats" in pieces[1]
    assert all(piece.startswith("… ") and piece.endswith(" …") and len(piece) <= 64 for piece in pieces)


@pytest.mark.requirement("T24.kept")
def test_one_piece_is_shown_where_most_different_words_stand_and_no_other_tells_more() -> None:
    text = f"The quokka, quokka, quokka.{FILLER}A quokka met a wallaby.{FILLER}"
    piece = shown(text, ["quokka", "wallabi"], 120)
    assert "quokka met a wallaby" in piece
    assert "\n" not in piece
    assert 100 < len(piece) <= 124


def test_words_that_fit_in_one_piece_stay_in_one() -> None:
    text = f"{FILLER}A quokka of the western islands and of the southern coast met a wallaby.{FILLER}"
    piece = shown(text, ["quokka", "wallabi"], 110)
    assert "quokka of the western islands and of the southern coast met a wallaby" in piece
    assert piece.count("…") == 2


@pytest.mark.parametrize(
    ("text", "words", "seen"),
    [
        ("The user_id is read. ", ["user_id", "user", "id"], "user_id"),
        ("全文検索は速い。", ["検索"], "検索"),
        ("On Mondays. ", ["mondai"], "Mondays"),
        ("See memory_search(*. ", ["memory_search"], "memory_search(*"),
    ],
)
def test_stems_are_found_in_the_words_that_they_stand_for(text: str, words: list[str], seen: str) -> None:
    assert seen in shown(FILLER + text + FILLER, words, 80)


def test_a_stem_is_found_at_the_beginning_of_words_alone() -> None:
    assert "art of" in shown(f"{FILLER}A cart, a smart part. {FILLER}The art of it. {FILLER}", ["art"], 60)


@pytest.mark.parametrize("words", [[], ["nowhere"]])
def test_without_any_word_the_beginning_is_shown(words: list[str]) -> None:
    assert shown(FILLER, words, 60) == "Entries stay close to whoever reads them. Entries stay …"


def test_no_excerpt_is_longer_than_asked_but_for_the_signs_around_its_pieces() -> None:
    text = " ".join(f"word{n} quokka{n % 7} {'x' * (n % 30)}" for n in range(400))
    words = [f"quokka{n}" for n in range(7)]
    for characters in range(1, 500, 7):
        assert len(shown(text, words, characters)) <= characters + 9
    assert shown(text, words, 0) == ""
    assert shown(text, words, len(text)) == text


PARTS = st.sampled_from(["a", "b", "i", "1", "_", " ", "é", "ab", "aba", "a_b", "bai", "abab"])
TEXTS = st.lists(PARTS, max_size=30).map("".join)
STEMS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map("".join), max_size=40)


@given(TEXTS, STEMS)
def test_places_are_those_of_the_longest_stems_at_the_beginning_of_words(text: str, words: list[str]) -> None:
    stems = list(dict.fromkeys(word.removesuffix("i") if len(word) > 3 else word for word in words))[:MOST_WORDS]
    longest_first = "|".join(map(re.escape, sorted(stems, key=len, reverse=True)))
    found = re.finditer(f"(?<![a-z0-9])(?:{longest_first})", text) if stems else []
    assert _places(text, words) == [(one.start(), one[0]) for one in found]


@given(TEXTS, STEMS, st.integers(1, 40))
def test_two_pieces_never_tell_more_than_one_that_holds_all_words(text: str, words: list[str], characters: int) -> None:
    places = _places(text, words)
    _, told = _piece(text, places, characters)
    if told == {word for _, word in places}:
        assert "\n" not in shown(text, words, characters)


@pytest.mark.requirement("T24.kept")
def test_rows_of_a_table_are_shown_below_its_head() -> None:
    rows = "".join(f"| option-{number} | {number} | seconds of patience |\n" for number in range(60))
    text = f"Settings.\n\n| name | default | meaning |\n|---|--:|---|\n{rows}| quokka | 30 | how many sleep |\n{rows}"
    piece = shown(text, ["quokka"], 240)
    assert piece.startswith("| name | default | meaning |\n… ")
    assert "| quokka | 30 | how many sleep |" in piece
    assert len(piece) <= 250
    assert shown(text, ["settings"], 240).count("| name |") == 1
    assert "name" not in shown(f"{text}\n\n{FILLER}zebra{FILLER}", ["zebra"], 240)
