"""What a document says in a few words, for answers that name it beside others."""

from __future__ import annotations

from itertools import pairwise

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import sections
from speckit_memory.memory.parsing.limits import cut_at_word
from speckit_memory.memory.parsing.summarising import READ, sentences

SECTION = "decision"
LONGEST = 240
"""Characters."""


def decision_words(body: str) -> str:
    """The first sentences of a document's decision, or of its text where no section is called so."""
    said = ""
    for sentence in sentences(_decision(body)[:READ]):
        if said and len(said) + len(sentence) >= LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return cut_at_word(said, LONGEST)


def _decision(body: str) -> str:
    """The section about the decision, or the whole text."""
    if not _may_name_it(body):
        return body
    try:
        decision = sections.part(body, SECTION)
    except SpeckitError:
        return body
    return body[decision.start : decision.end]


def _may_name_it(body: str) -> bool:
    """Whether a line that may be a heading or a tag says its name: reading all headings of a long text takes longer
    than the rest of an answer."""
    lines = body.casefold().split("\n") if SECTION in body.casefold() else []
    return any(
        SECTION in line and ("#" in line or "anchor" in line or following.lstrip().startswith(("=", "-")))
        for line, following in pairwise([*lines, ""])
    )
