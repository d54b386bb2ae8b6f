"""What begins a block of HTML in Markdown, and what ends it (CommonMark's seven kinds)."""

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
"""What begins HTML, after blanks; the name of the group that matched is its form."""
HTML_END = {
    "raw": re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    "comment": re.compile(r"-->"),
    "instruction": re.compile(r"\?>"),
    "cdata": re.compile(r"\]\]>"),
    "declaration": re.compile(r">"),
}
"""What ends HTML of these kinds; any other ends with a blank line."""
RAW_HTML = HTML_END.keys() - {"comment"}
"""Kinds of HTML in which comments are text."""


def opens_html(line: str) -> bool:
    """Whether a line begins HTML to which the lines below it may belong."""
    found = HTML.match(line.lstrip(" \t"))
    if not found:
        return False
    ending = HTML_END.get(str(found.lastgroup))
    return ending is None or not ending.search(line)
