"""Adds the links that a save asks for: `supersedes` and `relates_to` (features T4 and M7)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.editing.link_edit import edit_links
from speckit_memory.memory.intake.index_report import SavedLink, SaveResult
from speckit_memory.memory.parsing.declarations.causal_links import VOCABULARY
from speckit_memory.memory.store.records import Link, MemoryRecord


def resolve_links(
    get: Callable[[int | str], MemoryRecord],
    root: Path,
    path: str | Path,
    supersedes: Iterable[int | str],
    relates_to: Iterable[int | str],
) -> tuple[Link, ...]:
    """Resolves the links of a save.

    Args:
        get: Finds a memory.
        root: The workspace.
        path: The document that is saved; "" for a new one.
        supersedes: Memories, by id or key, that the document replaces.
        relates_to: Memories, by id or key, that it is related to.

    Raises:
        SpeckitError: E080 for each unknown memory, E030 for a link of the document to itself.
    """
    problems: list[Problem] = []
    links: dict[Link, None] = {}
    for word, names in (("supersedes", supersedes), ("related_to", relates_to)):
        for name in names:
            try:
                key = get(name).key
            except SpeckitError as error:
                problems += error.problems
                continue
            if path and os.path.realpath(root / key) == os.path.realpath(path):
                problems.append(Problem("E030", f"{key} cannot have a link to itself"))
            meaning = VOCABULARY[word]
            links[Link(meaning.relation, key, meaning.strength, f"{word}: {key}")] = None
    if problems:
        raise SpeckitError.of(problems)
    return tuple(links)


def declare_links(text: str, links: tuple[Link, ...]) -> str:
    """The text of a new document with these links in its front matter. Raises E101 if that cannot be edited."""
    return edit_links(text, lambda _: False, links, "content")


def settle_verdict(saved: SaveResult, links: tuple[SavedLink, ...]) -> SaveResult:
    """The save's report with its links. A link "supersedes" settles a verdict about the same memory."""
    verdict = saved.verdict
    if verdict and verdict.key in {link.target for link in links if link.relation == "supersedes"}:
        verdict = replace(verdict, kind="supersede", done=f"{verdict.key} is superseded, as requested")
    return replace(saved, links=links, verdict=verdict)
