"""The outline is that of a full CommonMark parser with tables."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tiers import examples

from speckit_memory.memory.indexing.markdown import Block, blocks

_PARSER = MarkdownIt("commonmark").enable("table").disable(["blockquote", "hr", "html_block", "list", "reference"])
_PARSER.core.ruler.enableOnly(["normalize", "block"])

INDENTATION = st.sampled_from(["", "", "", " ", "   ", "    ", "\t", "  \t"])
STARTS = st.sampled_from(
    [
        "", "#", "##", "# One", "#One", "####### seven", "# closed ##", "# open#", "# \\#", "```", "````", "```py",
        "``` a`b", "~~~", "~~~~ x`", "| a | b |", "a|b", "|a", "a|", "|", "||", "a \\| b | c", "|---|---|", "-|-",
        ":-|-:", "|:-:|", "- | -", "--", "-", "---", "-----  ", "===", "= =", "=", "|-", ":-", "|-|--|", "- item",
        "> quote", "1. one", "text", "text  ", "<!-- note -->", "[a]: b", "\u00a0", "\v", "\u2028", "ends with \\",
    ]
)  # fmt: skip
LINES = st.lists(
    st.tuples(
        INDENTATION, STARTS, st.sampled_from(["", "", "", " ", "\t", " x", " |", "\\|", " #", "\u00a0", "`", "\x1c"])
    ).map("".join),
    max_size=14,
)
SIGNS = st.text(st.sampled_from(" \t\n#`~=-|:\\ax\u00a0\v"), max_size=40)
TEXTS = st.one_of(LINES.map("\n".join), SIGNS, st.lists(SIGNS, max_size=4).map("\n".join))


def outline(text: str) -> list[Block]:
    """What the parser sees."""
    starts = [0, *(at + 1 for at, sign in enumerate(text) if sign == "\n")]
    tokens = _PARSER.parse(text)
    found = [Block(0)]
    for index, token in enumerate(tokens):
        if token.map is None or token.level or token.nesting < 0:
            continue
        start = starts[token.map[0]]
        if token.type == "heading_open":
            block = Block(start, "heading", int(token.tag[1:]), tokens[index + 1].content)
        else:
            block = Block(start, "whole" if token.type in ("fence", "table_open") else "text")
        if start == found[-1].start:
            found[-1] = block
        else:
            found.append(block)
    return found


@pytest.mark.requirement("I5")
@settings(max_examples=examples(2))
@given(TEXTS)
@example("|" * 300 + "\n" + "|-" * 299 + "|\n" + "a\n" * 400)
def test_blocks_are_those_of_a_full_parser(text: str) -> None:
    assert list(blocks(text)) == outline(text)


@pytest.mark.requirement("I5")
def test_a_long_heading_is_known_by_its_beginning() -> None:
    for text in ("# " + "word " * 100_000, "word " * 100_000 + "\n---\n", "word\n" * 100_000 + "====\n"):
        (block,) = blocks(text)
        assert block.kind == "heading"
        assert 3900 < len(block.heading) <= 4000
