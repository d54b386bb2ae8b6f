"""HTML as Markdown: what a reader of the page sees, without its scripts and styles (feature I1).

The text is cut into tags and words here, each character being looked at a fixed number of times, and the standard
library's parser is given one tag at a time: given a whole page, it takes hours for some that are never closed. Nothing
is fetched and nothing runs; an element that is never closed ends with the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import islice

from speckit_memory.memory.parsing.formats.page import Page
from speckit_memory.memory.parsing.formats.readable import Readable
from speckit_memory.memory.parsing.limits import MOST_MARKUP

LONGEST_TAG = 10_000
"""Characters; what is longer is no tag that a person wrote, and is passed over."""

_OPENING = re.compile(r"<(?=[A-Za-z/!?])")
_MARKUP = re.compile(rf"&|{_OPENING.pattern}")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)((?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+)>")
_UNQUOTED = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>]*+)>")
_RAW = frozenset({"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "canvas"})
"""What is in them is no text of the page."""
_LITERAL = {"<!--": "-->", "<![CDATA[": "]]>", "<!": ">", "<?": ">"}


def read(text: str) -> Readable:
    """The text of a page, line by line with the lines it comes from. What follows `MOST_MARKUP` tags is not read."""
    last = next((found.start() for found in islice(_MARKUP.finditer(text), MOST_MARKUP, None)), len(text))
    page, attributes = Page(), _Attributes()
    line, counted, hidden = 1, 0, ""
    for start, end, tag in _cut(text[:last]):
        line += text.count("\n", counted, start)
        counted = start
        if tag is None:
            if not hidden:
                page.words(unescape(text[start:end]), line)
            continue
        closing, name = bool(tag[1]), tag[2].lower()
        if hidden:
            if closing and name == hidden:
                hidden = ""
        elif name in _RAW:
            hidden = "" if closing or tag[3].endswith("/") else name
        elif closing:
            page.end(name)
        else:
            page.begin(name, attributes.of(tag[0]), line)
    found = page.readable()
    return found if last == len(text) else replace(found, limit="markup", limit_line=text.count("\n", 0, last) + 1)


def _cut(text: str) -> Iterator[tuple[int, int, re.Match[str] | None]]:
    """(start, end, tag) of each stretch: a tag, or what stands between two, None. Comments and declarations are left
    out; one that is never closed is text."""
    at = 0
    never: set[str] = set()
    for found in _OPENING.finditer(text):
        start = found.start()
        if start < at:
            continue
        opening = next((each for each in _LITERAL if text.startswith(each, start)), "")
        tag = None
        if opening:
            closing = _LITERAL[opening]
            behind = -1 if closing in never else text.find(closing, start + len(opening))
            if behind < 0:
                never.add(closing)
                continue
            end = behind + len(closing)
        else:
            tag = _TAG.match(text, start, start + LONGEST_TAG) or _UNQUOTED.match(text, start, start + LONGEST_TAG)
            if not tag:
                continue
            end = tag.end()
        if start > at:
            yield at, start, None
        if tag:
            yield start, end, tag
        at = end
    if at < len(text):
        yield at, len(text), None


class _Attributes(HTMLParser):
    """Reads the attributes of one tag."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: dict[str, str] = {}

    def of(self, tag: str) -> dict[str, str]:
        """The attributes of a tag that begins an element, by name in lower case; the first of equal names counts."""
        if "=" not in tag:
            return {}
        self._found = {}
        self.reset()
        self.feed(tag)
        return self._found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Keeps the attributes."""
        for name, value in attrs:
            self._found.setdefault(name, value or "")
