"""What a document says in a few words, for answers that name it beside others."""

from __future__ import annotations

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import sections
from speckit_memory.memory.indexing.limits import cut_at_word
from speckit_memory.memory.indexing.summarising import READ, sentences

LONGEST = 240
"""Characters."""


def decision_words(body: str) -> str:
    """The first sentences of a document's decision, or of its text where no section is called so."""
    try:
        decision = sections.part(body, "decision")
        text = body[decision.start : decision.end]
    except SpeckitError:
        text = body
    said = ""
    for sentence in sentences(text[:READ]):
        if said and len(said) + len(sentence) >= LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return cut_at_word(said, LONGEST)
