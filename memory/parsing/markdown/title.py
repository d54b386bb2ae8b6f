"""Chooses the title of a document: declared, else its first heading, else its file name (feature I1)."""

from __future__ import annotations

import re
from html import unescape
from itertools import islice
from pathlib import PurePosixPath

from speckit_memory.memory.parsing.limits import cut_at_word

LONGEST_TITLE = 120
"""Characters, including the ellipsis."""
LONGEST_RAW_TITLE = 1000
"""Characters read of a title: the search for bold markers takes quadratic time."""

GENERIC_TITLES = frozenset(
    {
        "context",
        "context summary",
        "document",
        "memory",
        "note",
        "notes",
        "session",
        "session summary",
        "summary",
        "untitled",
    }
)
"""Titles that say nothing about their document; the next candidate is tried instead."""

_WORD = re.compile(r"\S+")
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ \t]*[#.][\w:.-]+(?:[ \t]+[#.]?[\w:.=\"'-]+)*[ \t]*\}[ \t]*\Z")
"""An attribute list after a heading, with an id and classes."""
_INLINE = (
    # code span; link or image; autolink; img; other inline tag; comment; character reference; escape
    r"(?is)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<text>(?:[^\[\]\\]|\\.|!?\[[^\[\]]*\](?:\([^()]*\))?)*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])"
    r"|<(?P<address>(?:https?|ftp|mailto):[^<>\s]*)>"
    r"|<img\b(?:[^<>]*?\balt=(?:\"(?P<alt>[^\"]*)\"|'(?P<other_alt>[^']*)'))?[^<>]*>"
    r"|</?(?:a|abbr|b|bdi|bdo|big|br|center|cite|code|del|div|em|font|i|ins|kbd|mark|p|picture|q|s|samp|small|source|span"
    r"|strike|strong|sub|sup|tt|u|var|wbr)(?:\s[^<>]*)?/?>"
    r"|<!--.*?-->"
    r"|&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r"|\\(?P<mark>[!-/:-@\[-`{-~])"
)
"""Inline markup of a heading that is not rendered. Code spans come first because they stay. A string, not a pattern:
`re` compiles and caches it at first use, and searches do not need it."""
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_MARKED = re.compile(r"^ {0,3}(?:#(?=[ \t])|=)|<h1[\s>]", re.MULTILINE | re.IGNORECASE)
"""Matches in every text with a level-1 heading."""
_HTML_HEADING = re.compile(r"<h1(?:\s[^<>]*+)?>(.{0,4000}?)</h1\s*>", re.IGNORECASE | re.DOTALL)


def choose(declared: str, body: str, key: str, of_format: str = "") -> str:
    """Return the first title that is not generic: declared, first H1, title of the file format, file name.

    A generic file name is prefixed with its folder ("auth/memory.md" is "auth memory"). Never empty.

    Args:
        declared: The declared title, "" if none.
        body: The text of the document.
        key: Its key.
        of_format: The title given by the file format (`<title>`), "" if none.
    """
    for candidate in (declared, plain_text(first_heading(body)), of_format):
        title = normalise(candidate)
        if title and title.casefold() not in GENERIC_TITLES:
            return title
    path = PurePosixPath(key)
    name = _words(path.stem)
    if name.casefold() in GENERIC_TITLES and path.parent.name:
        name = f"{_words(path.parent.name)} {name}"
    return normalise(name) or key


def normalise(title: str) -> str:
    """Return a title as one line without backticks and bold markers, cut at a word border with an ellipsis."""
    words = islice(_WORD.finditer(title.replace("`", "")), LONGEST_RAW_TITLE)
    return cut_at_word(_BOLD.sub(r"\2", " ".join(word[0] for word in words)[:LONGEST_RAW_TITLE]), LONGEST_TITLE)


def plain_text(heading: str) -> str:
    """Return a heading as rendered: without ids, link addresses and tags; code and emphasis markers stay. The text of
    pictures is only used if there is no other text."""
    said = _ATTRIBUTES.sub("", heading[:LONGEST_RAW_TITLE])
    # The second pass uses the alternative texts of pictures, for a heading of pictures alone.
    for pictures in (False, True):
        if text := " ".join(_seen(said, pictures=pictures).split()):
            return text
    return ""


def _seen(text: str, *, pictures: bool) -> str:
    def replacement(found: re.Match[str]) -> str:
        if found["ticks"]:
            return found[0]
        if found[0].startswith("&"):
            return unescape(found[0])
        if found[0][:4].casefold() == "<img" or found[0].startswith("!["):
            return _seen(found["text"] or found["alt"] or found["other_alt"] or "", pictures=True) if pictures else ""
        if found["text"] is not None:
            return _seen(found["text"], pictures=pictures)
        return found["address"] or found["mark"] or (" " if found[0][:3].casefold() == "<br" else "")

    return re.sub(_INLINE, replacement, text)


def first_heading(body: str) -> str:
    """Return the text of the first level-1 heading, in Markdown or HTML; "" if there is none."""
    if not _MARKED.search(body):
        return ""
    from speckit_memory.memory.parsing.markdown.commonmark import leaves  # searches do not need it

    for leaf in leaves(body):
        if leaf.kind == "heading" and leaf.level == 1 and not leaf.depth and leaf.heading:
            return leaf.heading
        if leaf.kind == "html" and leaf.form == "block":
            found = _HTML_HEADING.search(body, leaf.start, leaf.end)
            if found and plain_text(found[1]):
                return found[1]
    return ""


def _words(name: str) -> str:
    return re.sub(r"[-_\s]+", " ", name).strip()
