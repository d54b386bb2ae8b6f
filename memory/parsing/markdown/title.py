"""The title of a document: declared, else its first heading, else its file name (feature I1)."""

from __future__ import annotations

import re
from html import unescape
from itertools import islice
from pathlib import PurePosixPath

from speckit_memory.memory.parsing.limits import cut_at_word

LONGEST_TITLE = 120
"""Characters, the ellipsis included."""
LONGEST_RAW_TITLE = 1000
"""Characters of a title that are looked at: the search for bold marks takes time by the square of them."""

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
"""Titles that say nothing about their document: the next source is asked instead."""

_WORD = re.compile(r"\S+")
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ \t]*[#.][\w:.-]+(?:[ \t]+[#.]?[\w:.=\"'-]+)*[ \t]*\}[ \t]*\Z")
"""The id and classes that some writers put behind a heading."""
_INLINE = (
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
"""What a heading is written with and a reader of the page does not see, code among words first: it stays. The module
`re` compiles it when it is first used: a search has no use for it."""
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_MARKED = re.compile(r"^ {0,3}(?:#(?=[ \t])|=)|<h1[\s>]", re.MULTILINE | re.IGNORECASE)
"""What a text with a heading of the first level holds."""
_HTML_HEADING = re.compile(r"<h1(?:\s[^<>]*+)?>(.{0,4000}?)</h1\s*>", re.IGNORECASE | re.DOTALL)


def choose(declared: str, body: str, key: str, of_format: str = "") -> str:
    """The first title that is not generic, of: the declared one, the first H1, what the format of the file has for a
    title (`<title>`), the name of the file.

    A generic file name gets its folder in front ("auth/memory.md" is "auth memory"). Never empty.
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
    """One line without back-ticks and bold marks, cut at a word border with an ellipsis when too long."""
    words = islice(_WORD.finditer(title.replace("`", "")), LONGEST_RAW_TITLE)
    return cut_at_word(_BOLD.sub(r"\2", " ".join(word[0] for word in words)[:LONGEST_RAW_TITLE]), LONGEST_TITLE)


def plain_text(heading: str) -> str:
    """A heading as a reader of the page sees it: without ids, addresses of links and tags; marks of code and of stress
    stay. Pictures are seen only where nothing else is."""
    said = _ATTRIBUTES.sub("", heading[:LONGEST_RAW_TITLE])
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
    """The text of the first heading of level 1, be it one of HTML; "" when there is none."""
    if not _MARKED.search(body):
        return ""
    from speckit_memory.memory.parsing.markdown.commonmark import leaves  # a search has no use for it

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
