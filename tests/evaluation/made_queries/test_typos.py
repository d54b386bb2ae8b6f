from __future__ import annotations

from random import Random

from speckit_memory.evaluation.made_queries.typos import typos
from tests.evaluation.made_queries.made import collection


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
