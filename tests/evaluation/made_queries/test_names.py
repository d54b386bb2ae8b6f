from __future__ import annotations

import pytest

from tests.evaluation.made_queries.made import collection, made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was written by Guido van Rossum in winter.", ["Guido van Rossum"]),
        ("We met Ludmila's brother.", ["Ludmila"]),
        ("They flew to New York City, then home.", ["New York City"]),
        ("They study at the University of Michigan now.", ["University of Michigan"]),
        ("He asked Jean-Paul about it.", ["Jean-Paul"]),
        ("Ludmila came. Nobody saw.", []),
        ("# Release Notes Overview\n\nNobody saw.", []),
        ("See the Kyoto Encyclopedia of Genes and Genomes for that.", []),
        ("They were Health and Retirement Study people.", []),
        ("It met on Tuesday in May.", []),
        ("The class is FooBar or HTMLParser or PEM-encoded.", []),
        ("They said The End and My Own.", []),
        ("the quick Brown Fox Jumped High", []),
    ],
)
def test_a_name_is_capitalised_inside_a_sentence(text: str, expected: list[str]) -> None:
    assert list(made("names", collection(text))) == expected


def test_all_documents_that_hold_the_name_are_relevant_wherever_it_stands() -> None:
    of = collection("We asked Ada Lovelace once.", "Ada Lovelace wrote it.", "ADA\nLOVELACE", "Nobody.")

    assert made("names", of) == {"Ada Lovelace": (0, 1, 2)}


def test_a_name_whose_words_stand_apart_in_another_document_is_left_out() -> None:
    of = collection("We asked Ada Lovelace once.", "Lovelace wrote to Ada.")

    assert "Ada Lovelace" not in made("names", of)


def test_a_name_of_one_word_that_is_also_written_small_is_left_out() -> None:
    of = collection("We use the Kettle here.", "A kettle.", "We saw Mercury rise.")

    assert made("names", of) == {"Mercury": (2,)}


def test_a_name_of_six_documents_is_left_out() -> None:
    of = collection(*["We met Ada."] * 6, *["We met Blaise."] * 5)

    assert made("names", of) == {"Blaise": (6, 7, 8, 9, 10)}


DEFINED = "A Pod Disruption Budget (PDB) is kept."


def test_an_acronym_and_its_long_form_ask_for_the_documents_that_hold_one_of_them() -> None:
    of = collection(DEFINED, "The PDB was full.", "Each pod disruption budget counts.", "A budget.")

    assert made("acronyms", of) == {"PDB": (0, 1, 2), "pod disruption budget": (0, 1, 2)}


def test_what_is_found_by_either_alone_is_not_asked_for() -> None:
    assert made("acronyms", collection(DEFINED, "The PDB was full.")) == {"pod disruption budget": (0, 1)}


@pytest.mark.parametrize(
    "other",
    ["The Paris Data Board (PDB) met.", "Type pdb to debug."],
    ids=["another meaning", "written small"],
)
def test_an_acronym_that_may_mean_something_else_is_left_out(other: str) -> None:
    assert made("acronyms", collection(DEFINED, "The PDB was full.", other)) == {}
