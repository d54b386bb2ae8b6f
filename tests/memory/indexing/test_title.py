from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.parsing.markdown import title


@pytest.mark.requirement("I1.title")
@pytest.mark.parametrize(
    ("declared", "body", "key", "expected"),
    [
        ("Use `RRF` **always**", "# Other", "a.md", "Use RRF always"),
        ("", "text\n\n# The first heading #\n\n# Second", "a.md", "The first heading"),
        ("Session Summary", "# Real title", "a.md", "Real title"),
        ("", "```\n# no heading\n```\n\nUnderlined\n===\n", "a.md", "Underlined"),
        ("", "no heading", "docs/0004-rank_fusion.md", "0004 rank fusion"),
        ("untitled", "# Memory", "auth/memory.md", "auth memory"),
    ],
)
def test_the_first_source_that_says_something_gives_the_title(
    declared: str, body: str, key: str, expected: str
) -> None:
    assert title.choose(declared, body, key) == expected


@pytest.mark.requirement("I1.title")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# Rate limits {#rate}", "Rate limits"),
        ("# Rate limits {: .wide #rate}", "Rate limits"),
        ("# The [docs](https://x.y/(a)) of `[x](y)`, [here][1]", "The docs of [x](y), here"),
        ("# ![Logo](a.png) [![build](b)](c) Heron", "Heron"),
        ("# ![Heron](a.png)", "Heron"),
        ("# AT&amp;T&#39;s &lt;T&gt; \\*x\\*", "AT&T's <T> *x*"),
        ("# <a id='top'></a>Heron <!-- draft -->", "Heron"),
        ("# Vec<T>, C#", "Vec<T>, C#"),
        ("# {not an id}", "{not an id}"),
        ('<h1 align="center">\n  <img src="a.png" alt="Logo"><br>The <b>Heron</b>\n</h1>\n\n# Other', "The Heron"),
        ("<div><h1>Heron</h1></div>", "Heron"),
        ("<!--\n# Draft\n\n# Draft\n-->\n<pre>\n# comment\n\n# comment\n</pre>\n# Heron", "Heron"),
        ("> # Quoted\n\n- # Listed\n\n    # Code\n\n# Heron", "Heron"),
        ("Heron\nof the north\n===", "Heron of the north"),
    ],
)
def test_a_title_is_what_a_reader_of_the_page_sees_of_its_first_heading(body: str, expected: str) -> None:
    assert title.choose("", body, "a.md") == expected


@pytest.mark.requirement("I1.title")
@given(st.text())
def test_a_title_is_one_line_of_at_most_120_characters(text: str) -> None:
    normal = title.normalise(text)

    assert len(normal) <= title.LONGEST_TITLE
    assert normal == " ".join(normal.split())


def test_a_long_title_ends_at_a_word_with_an_ellipsis() -> None:
    assert title.normalise("word " * 40) == "word " * 23 + "word…"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# a" + " " * 20_000 + "b", "a"),
        ("# " + "#" * 20_000 + " b", "#" * 119 + "…"),
        ("# " + "**a " * 20_000, ("**a " * 30).rstrip() + "…"),
    ],
    ids=["blanks", "number signs", "bold marks"],
)
def test_a_heading_of_any_length_is_read_in_linear_time(body: str, expected: str) -> None:
    assert title.choose("", body, "a.md") == expected  # minutes, were every division of the line tried


@pytest.mark.parametrize("line", ["# A title", "#\tA title  ", "# A title ##", "   # A title # \t"])
def test_closing_marks_are_no_part_of_a_heading(line: str) -> None:
    assert title.first_heading(line) == "A title"
