"""The outline of a Markdown text: where its blocks begin, and which of them are headings or must stay whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

Kind = Literal["heading", "whole", "text"]
"""`whole`: fenced code and tables, which lose their meaning when they are cut."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block from `line` (counted from 0) to the next block. `level` (1 to 6) and `heading` belong to headings."""

    line: int
    kind: Kind = "text"
    level: int = 0
    heading: str = ""


def blocks(text: str) -> list[Block]:
    """The top-level blocks in order; they tile the text: the first begins at line 0, each ends where the next begins.

    Lists and quotations are not opened: their paragraphs are blocks of the text, which is all that finding borders
    needs, and is what keeps hostile nesting linear. Line ends must be "\\n".
    """
    tokens = _parser().parse(text)
    found = [Block(0)]
    for index, token in enumerate(tokens):
        if token.map is None or token.level or token.nesting < 0:
            continue
        line = token.map[0]
        if token.type == "heading_open":
            block = Block(line, "heading", int(token.tag[1:]), tokens[index + 1].content)
        else:
            block = Block(line, "whole" if token.type in ("fence", "table_open") else "text")
        if line == found[-1].line:
            found[-1] = block
        else:
            found.append(block)
    return found


@cache
def _parser() -> MarkdownIt:
    """Imported at first use: reading a stored index needs no Markdown. The parser keeps no state between texts."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable(["blockquote", "hr", "html_block", "list", "reference"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
