"""What is checked before a single document is saved (feature I9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speckit_memory.config.options.saving import SavingRules
from speckit_memory.errors import Problem, Where
from speckit_memory.memory.intake.quality import PASS
from speckit_memory.memory.store.records import Document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speckit_memory.memory.intake.intake import Intake
    from speckit_memory.memory.store.reading.reader import KnownFile

ANCHORS = "E091"
"""The code of what is wrong with the anchors of a document."""


def no_text(text: str, key: str, line: int = 1, generated: bool = False) -> Problem:
    """The problem of a document without text, and why it has none: `text` is the whole file, its body from `line`.

    It may be that all of it was `generated` by `init`, and left out.
    """
    if generated:
        reason = "it holds nothing but what `init` wrote for agents"
    elif not text:
        reason = "the file holds no characters"
    elif not text.strip():
        reason = "the file holds nothing but blanks and line ends"
    else:
        reason = "nothing follows its front matter"
    hint = "An empty document has no words by which it could be found."
    actions = ("write something in it, or leave it as it is",)
    return Problem("E090", f"an empty document: {reason}", hint, actions, Where(key, line, 1))


def same_content(document: Document, known: Mapping[str, KnownFile]) -> tuple[str, ...]:
    """The keys of other memories with the content of the document; absent ones take no place from it."""
    return tuple(
        key
        for key, file in known.items()
        if file.content_hash == document.content_hash and key != document.key and not file.absent
    )


def duplicate(document: Document, keys: tuple[str, ...]) -> list[Problem]:
    """The problem of saving what other memories hold already, if there are any."""
    if not keys:
        return []
    others = ", ".join(keys)
    return [Problem("E092", f"{document.key} has the same content as {others}")]


def quality(key: str, intake: Intake, rules: SavingRules) -> list[Problem]:
    """The problem of a document that stays below the pass mark, where the workspace requires it (feature I10)."""
    found = intake.quality
    if rules.quality != "require" or found is None or found.passed:
        return []
    message = f"quality {found.score:g}, {PASS:g} is required: {'; '.join(found.issues)}"
    return [Problem("E090", message, "Trigger phrases, sound sections and headings raise it.", where=Where(key, 1, 1))]
