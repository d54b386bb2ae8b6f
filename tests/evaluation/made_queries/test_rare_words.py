from __future__ import annotations

from random import Random

from speckit_memory.evaluation.made_queries.rare_words import typos, words
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


def one_edit(typed: str, meant: str) -> bool:
    """Whether one letter was inserted, left out, replaced, or swapped with its neighbour."""
    start = next((n for n, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b), min(len(typed), len(meant)))
    a, b = typed[start:], meant[start:]
    return typed != meant and (a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:]))


def test_a_misspelling_is_one_edit_after_the_first_letter() -> None:
    of = collection("A lighthouse, a shipwreck and the quartermaster.")
    kinds = set()
    for seed in range(60):
        for query in typos(of, Random(seed)):
            meant = str(query.notes["word"])
            assert query.text[0] == meant[0]
            assert one_edit(query.text, meant), (query.text, meant)
            kinds.add((len(query.text) - len(meant), sorted(query.text) == sorted(meant)))

    assert kinds == {(1, False), (-1, False), (0, False), (0, True)}


def test_a_misspelling_that_could_mean_a_second_word_is_left_out() -> None:
    of = collection("The quartzes.", "The quarters.", "A lighthouse.")
    near = {("".join(sorted({"quartzes", "quarters"})))}
    for seed in range(200):
        for query in typos(of, Random(seed)):
            words = [word for word in ("quartzes", "quarters", "lighthouse") if one_edit(query.text, word)]
            assert words == [query.notes["word"]], near


def test_short_words_are_not_misspelt() -> None:
    assert list(typos(collection("An apple tree here."), Random(1))) == []


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
