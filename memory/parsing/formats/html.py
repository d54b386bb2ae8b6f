"""Converts the visible text of an HTML page to Markdown, without scripts and styles (feature I1).

The text is split into tags and words here in linear time, and the standard library's parser gets one tag at a time:
given a whole page, it takes hours for some with unclosed tags. Nothing is downloaded or executed; an unclosed element
ends with the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import islice

from speckit_memory.memory.parsing.formats.page import PageBuilder
from speckit_memory.memory.parsing.formats.readable import Readable
from speckit_memory.memory.parsing.limits import MOST_MARKUP

LONGEST_TAG = 10_000
"""Characters; a longer tag was not written by a person, and is read as text."""

_OPENING = re.compile(r"<(?=[A-Za-z/!?])")
_MARKUP = re.compile(rf"&|{_OPENING.pattern}")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)((?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+)>")
_UNQUOTED = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>]*+)>")
_RAW = frozenset({"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "canvas"})
"""Elements whose content is not visible text."""
_LITERAL = {"<!--": "-->", "<![CDATA[": "]]>", "<!": ">", "<?": ">"}


def read(text: str) -> Readable:
    """Return the text of a page with the source line of each line. Text after `MOST_MARKUP` tags is not read."""
    last = next((found.start() for found in islice(_MARKUP.finditer(text), MOST_MARKUP, None)), len(text))
    page, attributes = PageBuilder(), _Attributes()
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
    """Yield (start, end, tag) of each stretch, with tag None for text between tags. Comments and declarations are
    skipped; unclosed ones are text."""
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
                # Remember that the end does not occur, so that it is not searched for again: linear time.
                never.add(closing)
                continue
            end = behind + len(closing)
        else:
            # With an unbalanced quote, the tag ends at the first ">".
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
    """Parses the attributes of one tag."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: dict[str, str] = {}

    def of(self, tag: str) -> dict[str, str]:
        """Return the attributes of a start tag by lower-case name; the first of equal names is used."""
        if "=" not in tag:
            return {}
        self._found = {}
        self.reset()
        self.feed(tag)
        return self._found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Record the attributes."""
        for name, value in attrs:
            self._found.setdefault(name, value or "")
