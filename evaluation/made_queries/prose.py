"""Extracts the lines of a document that hold sentences: without code, URLs and markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NO_PROSE = re.compile(
    r"^ {0,3}(?P<fence>```|~~~)(?s:.*?)(?:^ {0,3}(?P=fence)|\Z)"  # fenced code
    r"|^(?: {4}|\t).*$"  # indented code
    r"|``?[^`\n]+``?"
    r"|<[^<>\n]{1,200}>"
    r"|\]\([^()\n]*\)"  # the target of a Markdown link
    r"|\b(?:https?://|www\.)\S+",
    re.MULTILINE,
)

_PLAIN_RUN = re.compile(r"(?<![\w'’/\\@=<>.-])[^\W\d_]+(?: [^\W\d_]+)*(?![\w'’/\\@=<>(-]|\.\w)")


def prose_lines(text: str) -> tuple[str, ...]:
    """The non-empty lines, in order. Removed text ends a line, so that it does not join the words around it."""
    return tuple(line for line in _NO_PROSE.sub("\n", text).splitlines() if line.strip())


def plain_runs(line: str) -> Iterator[list[str]]:
    """The runs of plain words in a line: letters only, separated by everything else."""
    return (run.split(" ") for run in _PLAIN_RUN.findall(line))
