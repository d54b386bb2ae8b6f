from __future__ import annotations

from tests.evaluation.made_queries.made import collection, made

TEXTS = ("The kettle is copper.", "A kettle of copper.", "One kettle boils.", "Copper pipes.")


def test_a_word_without_another_asks_for_the_documents_that_hold_the_first_alone() -> None:
    queries = made("negations", collection(*TEXTS))

    assert set(queries.values()) == {(2,), (3,)}
    assert {tuple(query.replace(",", "").split()[:: len(query.split()) - 1]) for query in queries} == {
        ("kettle", "copper"),
        ("copper", "kettle"),
    }


def test_what_a_document_says_to_be_lacking_is_left_out() -> None:
    assert made("negations", collection(*TEXTS, "It was not copper, and without kettle.")) == {}
