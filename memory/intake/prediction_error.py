"""What a saved document is to what is remembered: new, a repetition, more of the same, or its end (feature M6).

It is compared with live memories by their vectors of passages: how well each covers the other, passage by passage, the
lesser of both. So a short note is no duplicate of a long document that holds it. A key is never compared with its own
older version: an edit is always an update. docs/decisions/0061-saving-well.md says what follows from each verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.contradictions import Contradiction, contradiction
from speckit_memory.memory.lifecycle.reviews import USED, Review, review
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.reading import comparing, reader
from speckit_memory.memory.store.reading.comparing import LivePassages
from speckit_memory.memory.store.records import Relation, Tier
from speckit_memory.memory.store.tables.graph.edges import STRONGEST_AUTOMATIC, add_edge
from speckit_memory.memory.store.tables.vectors.vectors import nearest_exact
from speckit_memory.memory.store.writing.writer import Use, count_uses
from speckit_memory.pipeline.ports import Vectors

DUPLICATE = 0.95
HIGH = 0.85
MEDIUM = 0.70
LOW = 0.50
"""Cosine similarities, each the least of its band."""
MAKER = "prediction_error"
"""Who makes the edges of this gate."""
CANDIDATES = 5
"""Memories that are compared passage by passage."""
MOST_ASKED = 4
"""Passages, evenly spaced, whose neighbours are looked for."""
NEIGHBOURS = 20
MOST_PASSAGES = 64
PROTECTED = (Tier.CONSTITUTIONAL, Tier.CRITICAL)
"""What no automatic process says to be over."""

Kind = Literal["create", "update", "supersede", "reinforce", "duplicate"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a document is to the nearest live memory, with its evidence, and what was done about it.

    `similarity` is a cosine, None where nothing was compared; `band` is "duplicate", "high", "medium", "low" or "none".
    """

    kind: Kind
    band: str = "none"
    key: str = ""
    id: int | None = None
    similarity: float | None = None
    contradiction: Contradiction | None = None
    done: str = ""

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        found = self.contradiction
        return {
            "kind": self.kind,
            "band": self.band,
            **({"key": self.key, "id": self.id} if self.key else {}),
            **({"similarity": round(self.similarity, 4)} if self.similarity is not None else {}),
            **({"pattern": found.pattern, "confidence": found.confidence, "sentence": found.sentence} if found else {}),
            "done": self.done,
        }


def band(similarity: float) -> str:
    """The band of a cosine similarity."""
    borders = {"duplicate": DUPLICATE, "high": HIGH, "medium": MEDIUM, "low": LOW}
    return next((name for name, least in borders.items() if similarity >= least), "none")


def decide(similarity: float, found: Contradiction | None) -> Kind:
    """The verdict on a document with this similarity to the nearest memory, and what contradicts that.

    A text that takes back what a memory says is near to it, and may differ from it by a single word: so a
    contradiction goes before a repetition.
    """
    if similarity >= HIGH and found is not None and found.counts:
        return "supersede"
    if similarity >= DUPLICATE:
        return "reinforce"
    return "update" if similarity >= HIGH else "create"


def judge(connection: Connection, text: str, vectors: Vectors, own_id: int | None, now: float) -> Verdict:
    """The verdict on a document with these vectors of passages, whose own memory, if it has one, is left out.

    It is about the memory that the document takes back, if there is one, else about the nearest; below `HIGH` a
    contradiction is told and nothing done about it.
    """
    if not len(vectors) or not vectors.any():
        return Verdict("create", done="nothing: it has no vectors to be compared by")
    others = alike(connection, vectors[:MOST_PASSAGES], own_id, now)
    others.sort(key=lambda pair: (-pair[1], pair[0].id))
    if not others:
        return Verdict("create")
    signs = [
        contradiction(text, reader.body(connection, other.id)) if similarity >= MEDIUM else None
        for other, similarity in others
    ]
    taken_back = [at for at, found in enumerate(signs) if found is not None and found.counts]
    nearest = others[0][1]
    at = taken_back[0] if taken_back and (others[taken_back[0]][1] >= HIGH or nearest < HIGH) else 0
    (other, similarity), found = others[at], signs[at]
    name = band(similarity)
    if name == "none":
        return Verdict("create", name, similarity=similarity)
    return Verdict(decide(similarity, found), name, other.key, other.id, similarity, found)


def act(txn: Transaction, verdict: Verdict, own_id: int, now: float) -> str:
    """Does what follows from a verdict, and says what that was; nothing that a document says is lost by it."""
    if verdict.id is None:
        return verdict.done
    if verdict.kind == "reinforce":
        count_uses(txn, {verdict.id: Use(1, now)})
        review(txn, {verdict.id: Review(USED, now)})
        return f"{verdict.key} counts as used and reviewed once more"
    if verdict.kind == "supersede":
        return _supersede(txn, verdict, own_id, now)
    if verdict.kind == "update":
        return f"nothing: edit {verdict.key}, or link to it, if this is about the same"
    return f"nothing: {verdict.key} is related" if verdict.band == "medium" else ""


def _supersede(txn: Transaction, verdict: Verdict, own_id: int, now: float) -> str:
    found = verdict.contradiction
    evidence = f"similarity {verdict.similarity:.2f}"
    if found:
        evidence += f"; {found.pattern} ({found.confidence:.2f}): {found.sentence}"
    try:
        other = reader.get_memory(txn.connection, verdict.key)
        if other.tier in PROTECTED:
            return f"nothing: {verdict.key} is {other.tier}, which only a declared link supersedes"
        add_edge(txn, own_id, other.id, Relation.SUPERSEDES, STRONGEST_AUTOMATIC, evidence, MAKER, now)
    except SpeckitError as error:
        return f"nothing: {error.problems[0].message}"
    return f"{verdict.key} is marked as superseded, by an edge of {MAKER}"


def alike(connection: Connection, vectors: Vectors, own_id: int | None, now: float) -> list[tuple[LivePassages, float]]:
    """The live memories, `CANDIDATES` at most, nearest to a document with these vectors of passages, with their
    similarity (a cosine); its own memory is left out."""
    asked = np.unique(np.linspace(0, len(vectors) - 1, MOST_ASKED).round().astype(np.int64))
    votes: dict[int, float] = {}
    for at in asked.tolist():
        chunks, similarities = nearest_exact(connection, vectors[at], NEIGHBOURS)
        memories = comparing.memories_of(connection, chunks)
        best: dict[int, float] = {}
        for chunk, similarity in zip(chunks.tolist(), similarities.tolist(), strict=True):
            if chunk in memories:
                best.setdefault(memories[chunk], similarity)
        for memory, similarity in best.items():
            votes[memory] = votes.get(memory, 0.0) + similarity
    votes.pop(own_id or 0, None)
    chosen = comparing.live(connection, sorted(votes, key=lambda memory: (-votes[memory], memory)), now)[:CANDIDATES]
    return [
        (other, similarity_of(vectors, comparing.vectors_of(connection, other.id, MOST_PASSAGES))) for other in chosen
    ]


def similarity_of(one: Vectors, other: Vectors) -> float:
    """How well two documents cover each other, given unit vectors of their passages: in [-1, 1], 1 for the same.

    Each passage has its best counterpart; the mean of them is taken from both sides, and the lesser counts.
    """
    if not len(one) or not len(other):
        return 0.0
    products = one.astype(np.float64) @ other.astype(np.float64).T
    return float(min(products.max(axis=1).mean(), products.max(axis=0).mean()))
