"""The lines of a document that hold sentences: what is left without code, addresses and markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NO_PROSE = re.compile(
    r"^ {0,3}(?P<fence>```|~~~)(?s:.*?)(?:^ {0,3}(?P=fence)|\Z)"  # fenced code
    r"|^(?: {4}|\t).*$"  # indented code
    r"|``?[^`\n]+``?"
    r"|<[^<>\n]{1,200}>"
    r"|\]\([^()\n]*\)"  # where a Markdown link leads
    r"|\b(?:https?://|www\.)\S+",
    re.MULTILINE,
)

_PLAIN_RUN = re.compile(r"(?<![\w'’/\\@=<>.-])[^\W\d_]+(?: [^\W\d_]+)*(?![\w'’/\\@=<>(-]|\.\w)")


def prose_lines(text: str) -> tuple[str, ...]:
    """The lines that hold anything, in order. What was taken out ends a line, so that no two words meet by it."""
    return tuple(line for line in _NO_PROSE.sub("\n", text).splitlines() if line.strip())


def plain_runs(line: str) -> Iterator[list[str]]:
    """The words of a line that stand alone, of letters only, in the runs between everything else."""
    return (run.split(" ") for run in _PLAIN_RUN.findall(line))
