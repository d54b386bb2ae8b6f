"""Which of the files that came and went are the same: the rules one by one."""

from __future__ import annotations

import random

import pytest

from speckit_memory.memory.scanning.moves import LEAST_TEXT, MOST_HOLDERS, FileMove, equal, similar

pytestmark = pytest.mark.requirement("I8")

LINES = [f"Line {number} says something of its own about subject {number * 37}." for number in range(10)]


def text(*numbers: int) -> str:
    return "\n".join(LINES[number] for number in numbers) + "\n"


def pairs(moves: list[FileMove]) -> list[tuple[str, str]]:
    return [(move.old, move.new) for move in moves]


def test_an_equal_text_at_one_other_place_is_the_same_file() -> None:
    assert equal({"a.md": "1"}, {"b.md": "1"}, ()) == [FileMove("a.md", "b.md", 1.0)]
    assert equal({"a.md": "1"}, {"b.md": "2"}, ()) == []


def test_of_equal_files_those_with_like_paths_belong_together() -> None:
    left = {"old/x/README.md": "1", "old/y/README.md": "1", "old/y/z.md": "1"}
    found = {"new/z.md": "1", "new/y/README.md": "1", "new/x/README.md": "1"}
    assert pairs(equal(left, found, ())) == [
        ("old/x/README.md", "new/x/README.md"),
        ("old/y/README.md", "new/y/README.md"),
        ("old/y/z.md", "new/z.md"),
    ]


def test_equal_files_whose_paths_tell_nothing_follow_in_order() -> None:
    assert pairs(equal({"b.md": "1", "a.md": "1"}, {"d.md": "1"}, ())) == [("a.md", "d.md")]
    assert pairs(equal({"a.md": "1"}, {"d.md": "1", "c.md": "1"}, ())) == [("a.md", "c.md")]


def test_a_name_in_other_letters_is_the_same_name() -> None:
    left, found = {"Readme.md": "1", "b.md": "1"}, {"README.md": "1", "a.md": "1"}
    assert pairs(equal(left, found, ())) == [("Readme.md", "README.md"), ("b.md", "a.md")]


def test_two_files_that_changed_places_take_their_memories_with_them() -> None:
    assert pairs(equal({"a.md": "1", "b.md": "2"}, {"a.md": "2", "b.md": "1"}, ("a.md", "b.md"))) == [
        ("b.md", "a.md"),
        ("a.md", "b.md"),
    ]


def test_a_file_that_took_the_place_of_one_that_went_on() -> None:
    left, found = {"a.md": "1", "b.md": "2"}, {"b.md": "1", "c.md": "2"}
    assert pairs(equal(left, found, ("b.md",))) == [("a.md", "b.md"), ("b.md", "c.md")]


def test_a_file_that_is_overwritten_keeps_its_own_memory() -> None:
    assert equal({"a.md": "1", "b.md": "2"}, {"b.md": "1"}, ("b.md",)) == []


def test_a_copy_whose_original_was_edited_is_a_new_file() -> None:
    assert equal({"a.md": "1"}, {"a.md": "3", "copy.md": "1"}, ("a.md",)) == []


def test_an_edited_file_is_known_by_what_stayed_of_it() -> None:
    [move] = similar({"a.md": text(0, 1, 2, 3)}, {"b.md": text(0, 1, 2, 4)})
    assert (move.old, move.new, round(move.similarity, 1)) == ("a.md", "b.md", 0.7)


@pytest.mark.parametrize(("kept", "same_name", "other_name"), [(9, 1, 1), (6, 1, 0), (4, 0, 0)])
def test_a_name_that_stayed_needs_less_of_the_text(kept: int, same_name: int, other_name: int) -> None:
    rng = random.Random(5)
    lines = ["".join(rng.choices("abcdefgh", k=60)) for _ in range(20)]
    before, after = lines[:10], lines[:kept] + lines[10 : 20 - kept]
    found = "\n".join(after)
    assert len(similar({"docs/Plan.md": "\n".join(before)}, {"archive/plan.md": found})) == same_name
    assert len(similar({"docs/plan.md": "\n".join(before)}, {"docs/why.md": found})) == other_name


def test_of_two_that_may_be_meant_neither_is() -> None:
    left = {"a.md": text(0, 1, 2, 3, 4, 5), "b.md": text(0, 1, 2, 3, 4, 6)}
    assert similar(left, {"c.md": text(0, 1, 2, 3, 4, 7)}) == []
    assert similar({"a.md": text(0, 1, 2, 3)}, {"b.md": text(0, 1, 2, 4), "c.md": text(0, 1, 2, 5)}) == []


def test_short_texts_and_templates_are_no_evidence() -> None:
    short = "x" * (LEAST_TEXT - 1)
    assert similar({"a.md": short}, {"a/a.md": f"{short}\ny"}) == []
    template = "\n".join(f"A heading of the template, number {number}, which all have" for number in range(9))
    left = {f"{number}.md": f"{template}\n{number}" for number in range(MOST_HOLDERS + 1)}
    assert similar(left, {"a/7.md": f"{template}\nsomething else"}) == []


def test_a_thousand_edited_files_are_told_apart() -> None:
    rng = random.Random(11)
    words = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(2000)]
    files = {f"old/{n}.md": "\n".join(" ".join(rng.choices(words, k=8)) for _ in range(12)) for n in range(1000)}
    found = {key.replace("old/", "new/"): f"{text}\nIt lies at new now." for key, text in files.items()}
    assert pairs(similar(files, found)) == sorted((key, key.replace("old/", "new/")) for key in files)
