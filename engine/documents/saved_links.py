"""Adds the links that a save asks for: `supersedes` and `relates_to` (features T4 and M7)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.editing.link_edit import edit_links
from speckit_memory.memory.intake.index_report import SavedLink, SaveResult
from speckit_memory.memory.parsing.declarations.causal_links import VOCABULARY
from speckit_memory.memory.store.records import Link, MemoryRecord

if TYPE_CHECKING:
    from speckit_memory.engine.graph.lineage import Lineage
    from speckit_memory.engine.graph.linking import NamedEdge


class LinkedMemories(Protocol):
    """What the links of a save are looked up in and made by."""

    def get(self, name: int | str) -> MemoryRecord:
        """The memory of an id or key."""

    def lineage(
        self, name: int | str, *, direction: Literal["outgoing"], depth: int, relations: Sequence[str]
    ) -> Lineage:
        """The links of a memory.

        Args:
            name: The memory, by id or key.
            direction: Links that begin at the memory.
            depth: Maximum number of hops.
            relations: The relations to follow.
        """

    def link_one(
        self, source: int | str, relation: str, target: int | str, *, strength: float | None, evidence: str
    ) -> NamedEdge:
        """Makes a link.

        Args:
            source: The memory that the link begins at, by id or key.
            relation: One of the six relations.
            target: The memory that the link ends at, by id or key.
            strength: In [0, 1]; None for 1, or what an existing link has.
            evidence: A text that supports the link.
        """


def resolve_links(
    memory: LinkedMemories,
    root: Path,
    path: str | Path,
    supersedes: Iterable[int | str],
    relates_to: Iterable[int | str],
) -> tuple[Link, ...]:
    """Resolves the links of a save.

    Args:
        memory: The store.
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
                key = memory.get(name).key
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


def add_links(memory: LinkedMemories, saved: SaveResult, links: tuple[Link, ...]) -> SaveResult:
    """Adds the links of a saved document that do not exist yet; returns the save's report with all of them."""
    edges = []
    for link in links:
        relation = str(link.relation)
        around = memory.lineage(saved.key, direction="outgoing", depth=1, relations=(relation,))
        if any(step.target == link.target and step.created_by in ("manual", "document") for step in around.steps):
            edges.append(SavedLink(relation, link.target))
            continue
        edge = memory.link_one(saved.key, relation, link.target, strength=link.strength, evidence=link.evidence)
        edges.append(SavedLink(relation, link.target, edge.only_stored))
    return settle_verdict(saved, tuple(edges))


def settle_verdict(saved: SaveResult, links: tuple[SavedLink, ...]) -> SaveResult:
    """The save's report with its links. A link "supersedes" settles a verdict about the same memory."""
    verdict = saved.verdict
    if verdict and verdict.key in {link.target for link in links if link.relation == "supersedes"}:
        verdict = replace(verdict, kind="supersede", done=f"{verdict.key} is superseded, as requested")
    return replace(saved, links=links, verdict=verdict)
