from __future__ import annotations

from random import Random

from speckit_memory.evaluation.made_queries.words import words
from tests.evaluation.made_queries.made import collection, made


def test_a_word_is_relevant_to_all_its_documents_whatever_its_case() -> None:
    of = collection("A lighthouse.", "The Lighthouse keeper.", "Nothing here.")

    assert made("words", of)["lighthouse"] == (0, 1)
    assert made("words", of)["keeper"] == (1,)


def test_a_word_with_another_inflection_elsewhere_is_left_out() -> None:
    of = collection("They were painting.", "She paints.", "An easel.")

    assert set(made("words", of)) == {"easel"}


def test_a_word_that_is_part_of_an_identifier_elsewhere_is_left_out() -> None:
    of = collection("The harbour is deep.", "See harbour_master and deepWater.", "A pilot.")

    assert set(made("words", of)) == {"pilot"}


def test_what_is_no_word_of_a_sentence_is_not_asked_for() -> None:
    of = collection(
        "An oak: abc, 1234, about, NASA, mixedCase, snake_case, some.dotted, /path, https://example.org/wonderful\n"
        "```\nfenced\n```\n\n    indented code\n\nand `quoted`."
    )

    assert made("words", of) == {}


def test_a_word_of_four_documents_or_six_is_not_asked_for() -> None:
    of = collection("apple", "apple pear", "apple pear", "apple pear quince", "pear quince", "pear quince", "pear")

    assert made("words", of) == {"quince": (3, 4, 5)}


def test_there_are_as_many_words_of_each_number_of_documents() -> None:
    pool = [f"{a}{b}" for a in ("gran", "plum", "torn", "velv") for b in ("okal", "udig", "imor")]
    texts = [""] * 5
    for df in (1, 2, 3, 5):
        for word in [f"{word}{'abcde'[df - 1]}x" for word in pool]:
            texts = [f"{text} {word}" if row < df else text for row, text in enumerate(texts)]
    queries = list(words(collection(*texts), Random(1)))

    assert [sum(query.notes["df"] == df for query in queries[:16]) for df in (1, 2, 3, 5)] == [4, 4, 4, 4]
    assert all(query.notes["df"] == len(query.relevant) for query in queries)


def test_a_word_that_stands_in_the_key_of_another_document_is_left_out() -> None:
    of = collection("The first one has a harbour.", "Other.")
    keyed = type(of)([of.documents[0], type(of.documents[1])("notes/harbour.md", "", "Other.")])

    assert "harbour" in made("words", of)
    assert "harbour" not in made("words", keyed)
