"""The block structure is that of a full CommonMark parser with tables."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tiers import examples

from speckit_memory.memory.parsing.markdown.commonmark import leaves
from speckit_memory.memory.parsing.markdown.markdown import blocks

_PARSER = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
_PARSER.core.ruler.enableOnly(["normalize", "block"])
_KINDS = {"fence": "fence", "code_block": "code", "html_block": "html", "table_open": "table"}

INDENTATION = st.sampled_from(["", "", "", " ", "   ", "    ", "\t", "  \t"])
CONTAINERS = st.sampled_from(
    ["", "", "", "", "", "- ", "1. ", "2) ", "* ", "> ", ">", "-", "- - ", "- > ", "> - ", "> 1. "]
)
STARTS = st.sampled_from(
    [
        "", "#", "##", "# One", "#One", "####### seven", "# closed ##", "# open#", "# \\#", "```", "````", "```py",
        "``` a`b", "~~~", "~~~~ x`", "| a | b |", "a|b", "|a", "a|", "|", "||", "a \\| b | c", "|---|---|", "-|-",
        ":-|-:", "|:-:|", "-- | -", "--", "-", "---", "-----  ", "***", "* * *", "===", "= =", "=", "|-", ":-",
        "|-|--|", "- item", "> quote", "1. one", "2. two", "1.", "text", "text  ", "<!-- note -->", "<!--", "-->",
        "<pre>", "</pre>", "<div>", "</div>", "<b>", "<script>x</script>", "<?php", "?>", "<!DOCTYPE html", "<![CDATA[",
        "]]>", "<h1>Name</h1>", "<a href=x>", "<a href='x'>text", "\u00a0", "\v", "\u2028", "ends with \\",
    ]
)  # fmt: skip
_PARSERS_OWN = re.compile("<.*[\u00a0\x1c\v\u2028]")
"""Behind a tag these are blanks to the parser; to CommonMark spaces and tabs alone are."""
LINES = st.lists(
    st.tuples(
        INDENTATION, STARTS, st.sampled_from(["", "", "", " ", "\t", " x", " |", "\\|", " #", "\u00a0", "`", "\x1c"])
    )
    .map("".join)
    .filter(lambda line: not _PARSERS_OWN.search(line)),
    max_size=14,
)
_ITEMS = re.compile(r"^[ \t]*([-*+]|\d[.)])[ \t]+", re.MULTILINE)
"""The parser takes lazy lines for code where they are indented by four columns and the text of an item by more."""
NESTED = st.lists(
    st.tuples(CONTAINERS, STARTS.filter(lambda start: "|" not in start)).map("".join)
    | st.tuples(st.sampled_from(["  ", "   "]), STARTS.filter(lambda start: "|" not in start)).map("".join),
    max_size=14,
)
SIGNS = st.text(st.sampled_from(" \t\n#`~=-|:\\ax\u00a0\v"), max_size=40)
_HEADS = re.compile(r"^([ \t]*(?:#|[-+*][ \t]|\d[.)]|[<>]|`{3}|~{3}).*)\|", re.MULTILINE)
"""To the parser a heading or an item may be the head of a table."""
TEXTS = st.one_of(LINES.map("\n".join), SIGNS, st.lists(SIGNS, max_size=4).map("\n".join)).map(
    lambda text: _HEADS.sub(r"\1!", _ITEMS.sub(r"\1 ", text))
)


def parsed(text: str) -> list[tuple[int, str, int, str]]:
    """What the parser sees of headings of the text itself and, however deep, of code, HTML and tables."""
    starts = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]
    tokens = _PARSER.parse(text)
    return [
        (starts[token.map[0]], "heading", int(token.tag[1:]), tokens[index + 1].content)
        if token.type == "heading_open"
        else (starts[token.map[0]], _KINDS[token.type], 0, "")
        for index, token in enumerate(tokens)
        if token.map and (token.type in _KINDS or (token.type == "heading_open" and not token.level))
    ]


def read(text: str) -> list[tuple[int, str, int, str]]:
    return [
        (leaf.start, leaf.kind, leaf.level, leaf.heading)
        for leaf in leaves(text)
        if leaf.kind in _KINDS.values() or (leaf.kind == "heading" and not leaf.depth)
    ]


@pytest.mark.requirement("I5")
@settings(max_examples=examples(2))
@given(TEXTS)
@example("|" * 300 + "\n" + "|-" * 299 + "|\n" + "a\n" * 400)
def test_blocks_are_those_of_a_full_parser(text: str) -> None:
    assert read(text) == parsed(text)


@pytest.mark.requirement("I5")
@settings(max_examples=examples(2))
@given(NESTED.map("\n".join))
def test_blocks_in_lists_and_quotations_are_those_of_a_full_parser(text: str) -> None:
    assert read(text) == parsed(text)


@pytest.mark.requirement("I5")
@given(TEXTS | NESTED.map("\n".join))
def test_leaves_leave_out_blank_lines_alone_and_blocks_begin_where_they_do(text: str) -> None:
    end = 0
    for leaf in leaves(text):
        assert not text[end : leaf.start].strip(" \t\n>")
        assert end <= leaf.start < leaf.end
        end = leaf.end
    assert not text[end:].strip(" \t\n>")
    starts = [block.start for block in blocks(text)]
    assert starts == sorted(set(starts))
    assert starts[0] == 0


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("<!--\n## Next\n\n## Next\n-->\n\n## Last\n", ["Last"]),
        ("<pre>\n# a comment\n\n# another\n</pre>\n# Real\n", ["Real"]),
        ("    # in code\n\n# Real\n", ["Real"]),
        ("- ```\n  # in code\n  ```\n- # in an item\n\n> # quoted\n\n# Real\n", ["Real"]),
        ("- item\n---\n> quote\n===\n# Real\n", ["Real"]),
        ("<div>\n# raw\n\n# Real\n", ["Real"]),
        ("[a]: b\n===\n\n[a]: b 'c\nd'\nReal\n---\n", ["Real"]),
        ("<!-- note -->\nReal\n====\n", ["Real"]),
        ("1.  - text\n\n        # code of an item\n\n# Real\n", ["Real"]),
        ("> - deep\n# Real\n", ["Real"]),
    ],
)
def test_only_headings_of_the_text_itself_are_headings(text: str, headings: list[str]) -> None:
    assert [block.heading for block in blocks(text) if block.kind == "heading"] == headings


@pytest.mark.requirement("I5")
def test_what_lies_deeper_than_a_reader_can_follow_is_text() -> None:
    assert [block.kind for block in blocks("- " * 100_000 + "# x\n\n# Real\n")] == ["text", "heading"]


@pytest.mark.requirement("I5")
def test_a_long_heading_is_known_by_its_beginning() -> None:
    for text in ("# " + "word " * 100_000, "word " * 100_000 + "\n---\n", "word\n" * 100_000 + "====\n"):
        (block,) = blocks(text)
        assert block.kind == "heading"
        assert 3900 < len(block.heading) <= 4000
