"""Classifies a saved document against existing memories: new, repeated, extending or superseding (feature M6).

Documents are compared by their passage vectors: the similarity is the lesser of how well each covers the other, passage
by passage, so a short note is not a duplicate of a long document that contains it. An edit of a key is always an
update, never compared with the old version. docs/decisions/0061-saving-well.md defines the action for each verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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
from speckit_memory.pipeline.ports import Column, Ids, Vectors

DUPLICATE = 0.95
HIGH = 0.85
MEDIUM = 0.70
LOW = 0.50
"""Cosine similarities, each the lower bound of its band."""
MAKER = "prediction_error"
"""The creator recorded with the edges of this gate."""
CANDIDATES = 5
"""Memories compared passage by passage."""
MOST_ASKED = 4
"""Evenly spaced passages whose nearest neighbours are searched."""
NEIGHBOURS = 20
MOST_PASSAGES = 64
PROTECTED = (Tier.CONSTITUTIONAL, Tier.CRITICAL)
"""Tiers that no automatic process marks as superseded."""

Nearest = Callable[[Vectors, int], Sequence[tuple[Ids, Column]]]
"""The passages nearest to each of some unit vectors, at most so many, with their cosines."""

Kind = Literal["create", "update", "supersede", "reinforce", "duplicate"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The relation of a document to the nearest live memory, with the evidence, and the action taken in `done`.

    `similarity` is a cosine, None if nothing was compared; `band` is "duplicate", "high", "medium", "low" or "none".
    """

    kind: Kind
    band: str = "none"
    key: str = ""
    id: int | None = None
    similarity: float | None = None
    contradiction: Contradiction | None = None
    done: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
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
    """Return the band of a cosine similarity."""
    borders = {"duplicate": DUPLICATE, "high": HIGH, "medium": MEDIUM, "low": LOW}
    return next((name for name, least in borders.items() if similarity >= least), "none")


def decide(similarity: float, found: Contradiction | None) -> Kind:
    """Return the verdict for a similarity to the nearest memory and a contradiction of it.

    A text that contradicts a memory is similar to it and may differ in a single word, so a contradiction takes
    precedence over a duplicate.
    """
    if similarity >= HIGH and found is not None and found.counts:
        return "supersede"
    if similarity >= DUPLICATE:
        return "reinforce"
    return "update" if similarity >= HIGH else "create"


def judge(
    connection: Connection, text: str, vectors: Vectors, own_id: int | None, now: float, nearest: Nearest | None = None
) -> Verdict:
    """Return the verdict on a document against the live memories.

    It refers to the memory that the document contradicts, else to the nearest one; a contradiction below `HIGH` is only
    reported.

    Args:
        connection: Reads the store.
        text: The body of the document.
        vectors: Its passage vectors, shape (n, dimensions).
        own_id: The id of its memory, which is not compared; None if it is not stored.
        now: The time, in epoch seconds; expired memories are not compared.
        nearest: Finds passages; by default the file is searched, as of a process that saves a single document.
    """
    if not len(vectors) or not vectors.any():
        return Verdict("create", done="nothing: it has no vectors to compare")
    search = nearest or partial(nearest_in_file, connection)
    others = alike(connection, vectors[:MOST_PASSAGES], own_id, now, search)
    others.sort(key=lambda pair: (-pair[1], pair[0].id))
    if not others:
        return Verdict("create")
    # Reading bodies is the expensive part: texts below MEDIUM are not checked for contradictions.
    signs = [
        contradiction(text, reader.body(connection, other.id)) if similarity >= MEDIUM else None
        for other, similarity in others
    ]
    taken_back = [at for at, found in enumerate(signs) if found is not None and found.counts]
    highest = others[0][1]
    # Prefer the nearest contradicted memory, unless it is below HIGH while the nearest one is not.
    at = taken_back[0] if taken_back and (others[taken_back[0]][1] >= HIGH or highest < HIGH) else 0
    (other, similarity), found = others[at], signs[at]
    name = band(similarity)
    if name == "none":
        return Verdict("create", name, similarity=similarity)
    return Verdict(decide(similarity, found), name, other.key, other.id, similarity, found)


def act(txn: Transaction, verdict: Verdict, own_id: int, now: float) -> str:
    """Act on a verdict; no content of a memory is lost.

    Args:
        txn: The transaction to write in.
        verdict: The verdict.
        own_id: The id of the saved document's memory.
        now: The time, in epoch seconds.

    Returns:
        A description of the action taken.
    """
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


def alike(
    connection: Connection, vectors: Vectors, own_id: int | None, now: float, nearest: Nearest
) -> list[tuple[LivePassages, float]]:
    """Find the live memories nearest to a document.

    Args:
        connection: Reads the store.
        vectors: The passage vectors of the document, shape (n, dimensions).
        own_id: The id of its memory, which is left out.
        now: The time, in epoch seconds; expired memories are left out.
        nearest: Finds passages.

    Returns:
        At most `CANDIDATES` memories with their similarities (cosines), best candidate first.
    """
    # Candidates are voted for: each probed passage adds a memory's best similarity among its neighbours.
    asked = np.unique(np.linspace(0, len(vectors) - 1, MOST_ASKED).round().astype(np.int64))
    votes: dict[int, float] = {}
    for chunks, similarities in nearest(vectors[asked], NEIGHBOURS):
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


def nearest_in_file(connection: Connection, queries: Vectors, limit: int) -> list[tuple[Ids, Column]]:
    """A `Nearest` of the connection's file: reads all vectors for each query."""
    return [nearest_exact(connection, query, limit) for query in queries]


def similarity_of(one: Vectors, other: Vectors) -> float:
    """Return how well two documents cover each other, given unit vectors of their passages: in [-1, 1], 1 if equal.

    The cosine of each passage with its best match is averaged in both directions; the lesser mean is the result.
    """
    if not len(one) or not len(other):
        return 0.0
    # products: (n, m) float64; both sides are unit vectors, so these are cosines
    products = one.astype(np.float64) @ other.astype(np.float64).T
    # min(mean_i max_j c_ij, mean_j max_i c_ij)
    return float(min(products.max(axis=1).mean(), products.max(axis=0).mean()))
