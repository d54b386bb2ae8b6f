"""Divides a Markdown text into blocks for splitting it into passages: headings, whole blocks and text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from speckit_memory.memory.parsing.markdown.commonmark import LeafBlock, leaves

Kind = Literal["heading", "whole", "text"]
"""`whole`: fenced code and tables, which lose their meaning when split."""

_CODE = re.compile(r" {0,3}\t| {4}")
_WHOLE = {"fence": re.compile(r" {0,3}(?:```|~~~)"), "table": re.compile(r" {0,3}[^ \t>]")}
"""Start of the first line of a block that stays whole: not in a quotation, nor deep in a list."""
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+(?=[^\n])")


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A block from the offset `start` to the next block. `level` (1 to 6) and `heading` belong to headings."""

    start: int
    kind: Kind = "text"
    level: int = 0
    heading: str = ""


def blocks(text: str) -> Iterator[MarkdownBlock]:
    """Yield the blocks of a text in order. They tile it: the first begins at 0, each ends where the next begins.

    Headings in quotations and lists do not count. A block that follows text without a blank line belongs to it, unless
    it is a heading or must stay whole. Line ends must be "\\n".
    """
    block, end, code, after_table = MarkdownBlock(0), 0, False, False
    for leaf in leaves(text):
        for start, stop in _paragraphs(text, leaf) if leaf.kind == "html" else ((leaf.start, leaf.end),):
            indented = _CODE.match(text, start) is not None
            if leaf.kind == "heading" and not leaf.depth:
                following = MarkdownBlock(start, "heading", leaf.level, leaf.heading)
            elif leaf.kind in _WHOLE and _WHOLE[leaf.kind].match(text, start):
                following = MarkdownBlock(start, "whole")
            # A paragraph directly after text, or indented code after code, continues the open block.
            elif (code and indented) or (
                start == end and not code and (block.kind == "text" or (after_table and leaf.kind == "html"))
            ):
                end = stop
                continue
            else:
                following = MarkdownBlock(start)
            if start:
                yield block
            block, end, after_table = following, stop, leaf.kind == "table"
            code = indented and block.kind == "text"
    yield block


def _paragraphs(text: str, leaf: LeafBlock) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a leaf between blank lines."""
    start = leaf.start
    for blank in _BLANK_LINES.finditer(text, leaf.start, leaf.end):
        yield start, blank.start() + 1
        start = blank.end()
    yield start, leaf.end
