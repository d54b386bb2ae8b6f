from __future__ import annotations

from tests.evaluation.made_queries.made import collection, made


def test_two_words_in_forms_that_one_document_holds_while_others_hold_other_forms() -> None:
    of = collection("The kettles whistled.", "A kettle has kettles; we whistle.", "It whistled. A kettle stood.")

    assert made("surfaces", of) == {"kettles whistled": (0,)}


def test_words_that_no_other_document_holds_in_any_form_are_left_out() -> None:
    of = collection("The kettles whistled.", "A kettle.", "We whistle.")

    assert made("surfaces", of) == {}
