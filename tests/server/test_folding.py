from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.server.console.terminal import cells, cut_to_cells, fold


@pytest.mark.parametrize(
    ("text", "room", "taken", "lines"),
    [
        ("", 10, 0, [""]),
        ("one two three", 7, 0, ["one two", "three"]),
        ("one two three", 7, 4, ["one", "two", "three"]),
        ("one two", 7, 7, ["", "one two"]),
        ("see `a b c` now", 11, 0, ["see `a b c`", "now"]),
        ("now see `a b c`", 10, 0, ["now see", "`a b c`"]),
        ("`a b c d e f`", 6, 0, ["`a b c", "d e f`"]),
        ("abcdefghij", 4, 0, ["abcd", "efgh", "ij"]),
        ("全文検索", 4, 0, ["全文", "検索"]),
    ],
)
def test_lines_break_at_blanks_but_not_inside_code(text: str, room: int, taken: int, lines: list[str]) -> None:
    assert fold(text, room, taken) == lines


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn", "Me", "Cf", "Zl", "Zp"])), st.integers(2, 40))
def test_every_line_fits_and_nothing_is_lost(text: str, room: int) -> None:
    lines = fold(text, room)
    assert max(map(cells, lines)) <= room
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "room", "short"),
    [("label", 5, "label"), ("labels", 5, "labe…"), ("日本語", 4, "日…"), ("a label", 3, "a…")],
)
def test_a_shortened_text_shows_that_there_was_more(text: str, room: int, short: str) -> None:
    assert cut_to_cells(text, room) == short
    assert cells(short) <= room
