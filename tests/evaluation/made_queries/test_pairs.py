from __future__ import annotations

from tests.evaluation.made_queries.made import collection, made

FILLER = tuple(f"Filler number {number}." for number in range(40))


def test_two_words_that_are_neighbours_in_one_document_only() -> None:
    of = collection("We saw the copper kettle.", "A copper pipe.", "A kettle hummed.", *FILLER)

    assert made("pairs", of) == {"copper kettle": (0,)}


def test_stop_words_may_stand_between_and_are_not_asked() -> None:
    of = collection("The Kettle of the copper.", "A copper pipe.", "A kettle hummed.", *FILLER)

    assert made("pairs", of) == {"kettle copper": (0,)}


def test_words_that_are_together_elsewhere_in_any_form_are_left_out() -> None:
    of = collection("The copper kettle.", "Kettles, cups, and pots. Some are copper.", "A kettle.", *FILLER)

    assert made("pairs", of) == {}


def test_a_part_of_an_identifier_is_no_word_of_a_pair() -> None:
    of = collection("The old_copper kettle.", "A copper pipe.", "A copper kettle_lid.", "A kettle hummed.", *FILLER)

    assert made("pairs", of) == {}


def test_a_word_of_one_document_alone_makes_no_pair() -> None:
    of = collection("The copper kettle.", "A copper pipe.", *FILLER)

    assert made("pairs", of) == {}


def test_words_that_the_document_repeats_come_first() -> None:
    of = collection(
        "One silver spoon. The copper kettle. The copper kettle.",
        "A copper pipe.", "A kettle.", "Of silver.", "A spoon.", *FILLER,
    )  # fmt: skip

    for seed in range(10):
        assert list(made("pairs", of, seed)) == ["copper kettle", "silver spoon"]


def test_two_words_in_forms_that_one_document_holds_while_others_hold_other_forms() -> None:
    of = collection("The kettles whistled.", "A kettle has kettles; we whistle.", "It whistled. A kettle stood.")

    assert made("surfaces", of) == {"kettles whistled": (0,)}


def test_words_that_no_other_document_holds_in_any_form_are_left_out() -> None:
    of = collection("The kettles whistled.", "A kettle.", "We whistle.")

    assert made("surfaces", of) == {}
