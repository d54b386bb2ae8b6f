"""Builds the lineage of a memory as a document, with hints on links to review (feature M8)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from speckit_memory.engine.answers.decision_words import decision_words
from speckit_memory.memory.intake import suspicions
from speckit_memory.memory.intake.suspicions import Suspicion
from speckit_memory.memory.parsing.limits import cut_at_word
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import lineage, reader
from speckit_memory.memory.store.reading.lineage import Direction, LineageStep
from speckit_memory.memory.store.records import Relation

DEPTH = 3
"""Default number of hops."""
MOST_WORDED = 20
"""Number of nearest memories whose decision is quoted."""
MOST_HINTS = 20
"""Maximum number of hints."""
LONGEST_LABEL = 80
"""Maximum characters of a title and of a key in a diagram."""
_PLAIN = frozenset(" .,-_/")
READINGS: dict[tuple[Relation, str], str] = {
    (Relation.CAUSED, "incoming"): "caused by",
    (Relation.CAUSED, "outgoing"): "caused",
    (Relation.ENABLED, "incoming"): "enabled by",
    (Relation.ENABLED, "outgoing"): "enabled",
    (Relation.DERIVED_FROM, "outgoing"): "derived from",
    (Relation.DERIVED_FROM, "incoming"): "source of",
    (Relation.SUPPORTS, "incoming"): "supported by",
    (Relation.SUPPORTS, "outgoing"): "supports",
    (Relation.SUPERSEDES, "outgoing"): "supersedes",
    (Relation.SUPERSEDES, "incoming"): "superseded by",
    (Relation.CONTRADICTS, "outgoing"): "contradicts",
    (Relation.CONTRADICTS, "incoming"): "contradicted by",
}
"""How a link reads from the end nearer to the memory, in order of interest for a "why" question."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The links within `depth` hops of a memory, nearest and strongest first, each once.

    `hints` name contradictions and superseded memories; `cut` says whether links were left out.
    """

    id: int
    key: str
    title: str
    direction: Direction
    depth: int
    steps: tuple[LineageStep, ...]
    hints: tuple[str, ...]
    cut: bool
    words: Mapping[int, str] = field(default_factory=dict)
    """The decision, or else the beginning, of the nearest memories, by id."""

    @property
    def groups(self) -> dict[str, tuple[LineageStep, ...]]:
        """The links by their reading from the nearer end, such as "caused by"; empty groups are left out."""
        of_reading: dict[str, list[LineageStep]] = {name: [] for name in READINGS.values()}
        for step in self.steps:
            of_reading[READINGS[step.relation, step.direction]].append(step)
        return {name: tuple(steps) for name, steps in of_reading.items() if steps}

    @property
    def memories(self) -> dict[int, tuple[str, str]]:
        """Key and title of every linked memory, by id; the memory itself first."""
        found = {self.id: (self.key, self.title)}
        for step in self.steps:
            found.setdefault(step.source_id, (step.source, step.source_title))
            found.setdefault(step.target_id, (step.target, step.target_title))
        return found

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "id": self.id,
            "key": self.key,
            "title": self.title,
            "direction": self.direction,
            "depth": self.depth,
            "reached": max((step.hop for step in self.steps), default=0),
            "links": len(self.steps),
            "cut": self.cut,
            "groups": {name: [link_json(step) for step in steps] for name, steps in self.groups.items()},
            "memories": self.named(),
            "hints": list(self.hints),
        }

    def named(self) -> list[dict[str, Any]]:
        """The memories as plain data."""
        return [
            {"id": number, "key": key, "title": title, "words": self.words.get(number, "")}
            for number, (key, title) in self.memories.items()
        ]

    def mermaid(self) -> str:
        """A Mermaid flowchart, with titles escaped."""
        return flowchart(self)


def link_json(step: LineageStep) -> dict[str, Any]:
    """A link as plain data, without titles, which are listed with the memories."""
    return {
        "edge": step.edge,
        "source": step.source,
        "relation": str(step.relation),
        "target": step.target,
        "strength": round(step.strength, 4),
        "evidence": step.evidence,
        "created_by": step.created_by,
        **({"principal": step.principal} if step.principal else {}),
        "direction": step.direction,
        "hop": step.hop,
    }


def lineage_of(
    database: Database, name: int | str, direction: Direction, depth: int, relations: Sequence[str]
) -> Lineage:
    """Builds the lineage of a memory.

    Args:
        database: The store's file.
        name: The memory, by id or key.
        direction: "outgoing", "incoming" or "both".
        depth: Maximum number of hops.
        relations: Follow only these relations; empty for all.

    Raises:
        SpeckitError: E080 for an unknown memory, E030 and E032 for other values.
    """
    # One snapshot for all of it: keys, links and words belong to the same state.
    with database.snapshot_read() as connection:
        memory = reader.get_memory(connection, name)
        walked = lineage.walk(connection, memory.id, direction, depth, relations)
        suspected = suspicions.standing(connection)
        reached = dict.fromkeys(
            [memory.id, *(end for step in walked.steps for end in (step.source_id, step.target_id))]
        )
        words = {number: decision_words(reader.body(connection, number)) for number in [*reached][:MOST_WORDED]}
    hints = tuple(_hints(walked.steps)) + tuple(_suspected(suspected, memory.key, walked.steps))
    return Lineage(memory.id, memory.key, memory.title, direction, depth, walked.steps, _few(hints), walked.cut, words)


def _few(hints: tuple[str, ...]) -> tuple[str, ...]:
    """The first hints, and the number of the others."""
    more = len(hints) - MOST_HINTS
    return hints if more <= 0 else (*hints[:MOST_HINTS], f"{more} more: ask for fewer hops or some relations")


def _suspected(suspected: Sequence[Suspicion], key: str, steps: Sequence[LineageStep]) -> list[str]:
    """Contradictions that background work suspects between memories of the lineage."""
    keys = {key, *(end for step in steps for end in (step.source, step.target))}
    return [
        f"{pair.newer} may contradict {pair.older} ({pair.pattern}: {pair.sentence}): see `speckit-memory links review`"
        for pair in suspected
        # Only if both memories are in the lineage.
        if {pair.newer, pair.older} <= keys
    ]


def _hints(steps: Sequence[LineageStep]) -> list[str]:
    """Hints on contradictions, memories that supersede each other, and superseded memories."""
    by_relation: dict[Relation, list[LineageStep]] = {}
    for step in steps:
        by_relation.setdefault(step.relation, []).append(step)
    # frozenset: support counts in either direction, unlike supersession.
    supported = {frozenset((step.source_id, step.target_id)) for step in by_relation.get(Relation.SUPPORTS, ())}
    replaced = {(step.source_id, step.target_id) for step in by_relation.get(Relation.SUPERSEDES, ())}
    hints = []
    for step in by_relation.get(Relation.CONTRADICTS, ()):
        pair = (step.source_id, step.target_id)
        if pair in replaced or pair[::-1] in replaced:
            continue  # the supersession is reported below
        also = ", and one supports the other" if frozenset(pair) in supported else ""
        hints.append(f"{step.source} contradicts {step.target}{also}: review which of them holds")
    for step in by_relation.get(Relation.SUPERSEDES, ()):
        if (step.target_id, step.source_id) in replaced:
            # Each mutual pair is met twice and reported once.
            if step.source_id < step.target_id:
                hints.append(f"{step.source} and {step.target} supersede each other: review which of them holds")
        else:
            hints.append(f"{step.target} is superseded by {step.source}")
    # Two links may give the same hint; the first place is kept.
    return list(dict.fromkeys(hints))


def flowchart(lineage: Lineage) -> str:
    """The lineage as a Mermaid flowchart: a node for each memory, an arrow for each link, ended by a line break.

    Titles and keys appear only in labels, in which every character but letters, digits and `_PLAIN` is written as its
    number (`#34;`): no text of a document can mean anything to Mermaid.
    """
    lines = ["flowchart LR"]
    for number, (key, title) in lineage.memories.items():
        named = label(key) if title in ("", key) else f"{label(title)}<br/>{label(key)}"
        lines.append(f'    m{number}["{named}"]')
    for step in lineage.steps:
        arrow = "-.->" if step.relation == "contradicts" else "-->"
        lines.append(f'    m{step.source_id} {arrow}|"{label(step.relation)} {step.strength:.2g}"| m{step.target_id}')
    lines.append("    classDef asked stroke-width:3px")
    lines.append(f"    class m{lineage.id} asked")
    return "\n".join(lines) + "\n"


def label(text: str) -> str:
    """A text within a quoted label."""
    shown = " ".join("".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text).split())
    return "".join(
        sign if sign in _PLAIN or sign.isalnum() else f"#{ord(sign)};" for sign in cut_at_word(shown, LONGEST_LABEL)
    )
