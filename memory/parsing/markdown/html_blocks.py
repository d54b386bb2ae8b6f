"""Patterns for the start and the end of HTML blocks in Markdown (CommonMark's seven kinds)."""

from __future__ import annotations

import re

_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|link|"
    "main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|"
    "title|tr|track|ul"
)
_ATTRIBUTE = r"[ \t]++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:[ \t]*+=[ \t]*+(?:[^\s\"'=<>`]++|'[^'\n]*+'|\"[^\"\n]*+\"))?+"
HTML = re.compile(
    r"<(?:(?P<raw>script|pre|style|textarea)(?=[ \t>\n]|\Z)|(?P<comment>!--)|(?P<instruction>\?)|(?P<cdata>!\[CDATA\[)|"
    rf"(?P<declaration>![A-Za-z])|(?P<block>/?(?:{_BLOCK_TAGS})(?=[ \t\n>]|/>|\Z))|"
    rf"(?P<tag>(?:[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+[ \t]*+/?|/[A-Za-z][A-Za-z0-9-]*+[ \t]*+)>[ \t]*+(?:\n|\Z)))",
    re.IGNORECASE,
)
"""The start of an HTML block, after blanks; the name of the matched group is its kind."""
HTML_END = {
    "raw": re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    "comment": re.compile(r"-->"),
    "instruction": re.compile(r"\?>"),
    "cdata": re.compile(r"\]\]>"),
    "declaration": re.compile(r">"),
}
"""The end of HTML blocks of these kinds; the others end with a blank line."""
RAW_HTML = HTML_END.keys() - {"comment"}
"""Kinds of HTML blocks in which comments are text."""


def opens_html(line: str) -> bool:
    """Whether a line begins an HTML block that may continue on the next line."""
    found = HTML.match(line.lstrip(" \t"))
    if not found:
        return False
    ending = HTML_END.get(str(found.lastgroup))
    return ending is None or not ending.search(line)
