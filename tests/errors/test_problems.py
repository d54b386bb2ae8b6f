from __future__ import annotations

import pytest

from speckit_memory.errors import closest, nearest


@pytest.mark.parametrize(
    ("name", "accepted", "meant"),
    [
        ("titel", ["body", "path", "title", "triggers"], "title"),
        ("rfr", ["rrf", "rsf"], "rrf"),
        ("rsf", ["rfs", "rrf"], "rfs"),
        ("ot", ["no", "to"], "to"),
        ("fst5", ["bm25", "fts5"], "fts5"),
        ("limitt", ["limit", "list"], "limit"),
        ("ab", ["cd"], ""),
        ("ab", ["abc", "bac"], "abc"),
        ("", ["a"], ""),
        ("a", [], ""),
    ],
)
@pytest.mark.requirement("T26")
def test_the_closest_name_is_the_one_with_two_letters_in_order_again_or_else_the_most_alike(
    name: str, accepted: list[str], meant: str
) -> None:
    assert closest(name, accepted) == meant


def test_all_names_are_offered_when_none_is_close() -> None:
    assert nearest("ot", ["to"]) == "did you mean 'to'?"
    assert nearest("x", ["b", "a"]) == "accepted: a, b"
    assert nearest("x", []) == "nothing is accepted here"
