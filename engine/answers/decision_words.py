"""Extracts the decision from a document in a few words, for answers that mention the document."""

from __future__ import annotations

from itertools import pairwise

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import sections
from speckit_memory.memory.parsing.limits import cut_at_word
from speckit_memory.memory.parsing.summarising import READ, sentences

SECTION = "decision"
LONGEST = 240
"""Maximum length in characters."""


def decision_words(body: str) -> str:
    """The first sentences of a document's decision section, or of its text if it has none."""
    said = ""
    for sentence in sentences(_decision(body)[:READ]):
        if said and len(said) + len(sentence) >= LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return cut_at_word(said, LONGEST)


def _decision(body: str) -> str:
    """The decision section, or the whole text."""
    if not _may_name_it(body):
        return body
    try:
        decision = sections.part(body, SECTION)
    except SpeckitError:
        return body
    return body[decision.start : decision.end]


def _may_name_it(body: str) -> bool:
    """Whether a possible heading or tag contains the section's name. Avoids parsing all headings of long texts."""
    lines = body.casefold().split("\n") if SECTION in body.casefold() else []
    return any(
        SECTION in line and ("#" in line or "anchor" in line or following.lstrip().startswith(("=", "-")))
        for line, following in pairwise([*lines, ""])
    )
