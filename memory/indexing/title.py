"""The title of a document: declared, else its first heading, else its file name (feature I1)."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import PurePosixPath

from speckit_memory.memory.indexing.limits import cut_at_word

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
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FIRST_LEVEL = re.compile(r" {0,3}#[ \t]+")
_MARKED = re.compile(r"^(?:[^\S\n]*+(?:```|~~~)| {0,3}#[ \t]| {0,3}=)", re.MULTILINE)
"""The beginning of a line that may be a fence, a heading of the first level or what makes one of the line before."""
_UNDERLINE = re.compile(r" {0,3}=+[ \t]*$")


def choose(declared: str, body: str, key: str, of_format: str = "") -> str:
    """The first title that is not generic, of: the declared one, the first H1, what the format of the file has for a
    title (`<title>`), the name of the file.

    A generic file name gets its folder in front ("auth/memory.md" is "auth memory"). Never empty.
    """
    for candidate in (declared, first_heading(body), of_format):
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


def first_heading(body: str) -> str:
    """The text of the first heading of level 1, "" when there is none; code blocks are passed over."""
    fence = ""
    for found in _MARKED.finditer(body):
        start = found.start()
        end = body.find("\n", start)
        line = body[start : len(body) if end < 0 else end]
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif match := _FENCE.match(line):
            fence = match[1]
        elif match := _FIRST_LEVEL.match(line):
            return line[match.end() :].rstrip(" \t").rstrip("#").rstrip(" \t")
        elif _UNDERLINE.match(line) and (previous := body[body.rfind("\n", 0, max(start - 1, 0)) + 1 : start].strip()):
            return previous
    return ""


def _words(name: str) -> str:
    return re.sub(r"[-_\s]+", " ", name).strip()
