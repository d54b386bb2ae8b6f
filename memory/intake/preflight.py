"""Checks that run before a single document is saved (feature I9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.errors import Problem, Where
from speckit_memory.memory.intake.quality import PASS
from speckit_memory.memory.store.records import Document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from speckit_memory.memory.intake.intake import Intake
    from speckit_memory.memory.store.reading.reader import KnownFile

ANCHORS = "E091"
"""The code of anchor errors."""


def no_text(text: str, key: str, line: int = 1, generated: bool = False) -> Problem:
    """Return the problem of a document without text, with the reason.

    Args:
        text: The whole file.
        key: The key of the document.
        line: The first line of its body.
        generated: Whether all of it was written by `init` and left out.
    """
    if generated:
        reason = "it holds only text that `init` wrote for agents"
    elif not text:
        reason = "the file holds no characters"
    elif not text.strip():
        reason = "the file holds only blanks and line ends"
    else:
        reason = "nothing follows its front matter"
    hint = "An empty document has no words to search for."
    actions = ("add text, or leave the file unindexed",)
    return Problem("E090", f"an empty document: {reason}", hint, actions, Where(key, line, 1))


def same_content(document: Document, known: Mapping[str, KnownFile]) -> tuple[str, ...]:
    """Return the keys of other memories with the same content, except absent ones."""
    return tuple(
        key
        for key, file in known.items()
        if file.content_hash == document.content_hash and key != document.key and not file.absent
    )


def duplicate(document: Document, keys: tuple[str, ...]) -> list[Problem]:
    """Return the problem of saving the content of other memories, if `keys` has any."""
    if not keys:
        return []
    others = ", ".join(keys)
    return [Problem("E092", f"{document.key} has the same content as {others}")]


def quality(key: str, intake: Intake, rules: SavingRules) -> list[Problem]:
    """Return the problem of a document below the pass mark if the workspace requires that quality (feature I10)."""
    found = intake.quality
    if rules.quality != "require" or found is None or found.passed:
        return []
    message = f"quality {found.score:g}, {PASS:g} is required: {'; '.join(found.issues)}"
    return [Problem("E090", message, "Trigger phrases, sound sections and headings raise it.", where=Where(key, 1, 1))]
