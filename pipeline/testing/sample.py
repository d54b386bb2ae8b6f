"""The default data of the contract suite: stores, queries and pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from speckit_memory.pipeline.model.columns import Plan, Pool, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter, FolderDescription
from speckit_memory.pipeline.roles.registry import RegisteredComponent
from speckit_memory.pipeline.testing.memories import DAY, Edge, Memory, words
from speckit_memory.pipeline.testing.pools import pool_of
from speckit_memory.pipeline.testing.store import FakeStore

NOW = 400 * DAY
NUMBERS = {
    "created_at": NOW - 30 * DAY,
    "updated_at": NOW - 20 * DAY,
    "access_count": 3.0,
    "stability": 4.0,
    "difficulty": 5.0,
    "confidence": 0.6,
    "validation_count": 2.0,
    "importance_weight": 0.5,
    "interference": 1.0,
    "characters": 120.0,
}
NEW = {**NUMBERS, "created_at": NOW - DAY / 24, "updated_at": NOW - DAY / 24}
STEPS = "<!-- ANCHOR:steps -->\nmeasure again\n<!-- /ANCHOR:steps -->"


def sample_store() -> FakeStore:
    """A store with all parts, in which each built-in component has an effect."""
    memories = [
        Memory(
            1,
            "Rank fusion",
            ("fusion of ranked lists", "why fusion by rank"),
            ("rank fusion",),
            folder="search",
            document_type="spec",
            numbers=NUMBERS,
        ),
        Memory(
            2, "House rules", ("never push untested fusion",), tier="constitutional", folder="rules", numbers=NUMBERS
        ),
        Memory(3, "Old fusion", ("fusion as it was",), tier="deprecated", folder="search", numbers=NUMBERS),
        Memory(4, "Decay", ("memories decay", "until a review"), folder="search/deep", tier="critical"),
        Memory(5, "Gone", ("fusion that expired",), folder="search", numbers={**NUMBERS, "expires_at": NOW - DAY}),
        Memory(
            6,
            "Fusion weights",
            ("weights of ranked lists",),
            learned=("lists",),
            folder="search",
            numbers=NEW,
            context_type="decision",
            labels={"content_hash": "twin"},
        ),
        Memory(
            7,
            "Fusion",
            (f"weights of ranked lists again {STEPS}",),
            folder="search",
            numbers=NEW,
            labels={"content_hash": "twin"},
        ),
        Memory(8, "Aggregation", ("computeMPAB: mean best passage (MBP)",), folder="notes", numbers=NUMBERS),
        *(
            Memory(i, f"Note {i}", (f"note {i} " + "text " * i,), folder="notes", numbers=NUMBERS)
            for i in range(10, 20)
        ),
    ]
    return FakeStore(
        *memories,
        edges=(
            Edge(1, 4, "caused", 0.8),
            Edge(6, 1, "supersedes"),
            Edge(2, 4, "supports", 0.5),
            Edge(3, 4, "caused"),
        ),
        folders=(
            FolderDescription("search", "Ranked retrieval.", frozenset({"fusion", "lists"})),
            FolderDescription("rules", "What holds always.", frozenset({"push"})),
        ),
        attended={"s": {1: 0.9, 4: 0.2}},
        delivered={"s": {6}},
        relevance={text: 1.0 / (1 + len(text)) for memory in memories for text in memory.chunks},
        closeness={id_: id_ % 7 / 7 for memory in memories for id_ in (memory.id, *memory.chunk_ids) if id_ % 5},
    )


def _query(text: str = "rank fusion of lists", **changes: object) -> Query:
    asked = {"text": text, "now": NOW, "terms": words(text), "session": "s", "plan": Plan(variants=(text,)), **changes}
    return Query(**asked)  # type: ignore[arg-type]  # the fields of a query, by name


QUESTIONS = (
    _query(),
    _query("unknown words only"),
    _query(""),
    _query(wanted=Filter(folder="search")),
    _query(wanted=Filter(tier="critical")),
    _query("why did we choose rank fusion, actually?", mode="deep"),
    _query("why did we fix it, actually?", mode="deep"),
    _query(mode="quick"),
    _query(token_usage=0.9),
    _query(anchors=("steps",)),
    _query("computeMPAB"),
    _query("what changed today", plan=Plan(variants=("what changed today",), times=((NOW - DAY, NOW),), topic=())),
    _query("fusoin"),
    _query("MBP"),
    _query(plan=Plan(variants=("rank fusion of lists",), intent="find_decision", intent_confidence=0.9)),
)

POOLS: dict[str, dict[int, float]] = {
    "none": {},
    "one": {1: 0.5},
    "few": {1: 0.9, 2: 0.8, 6: 0.8, 7: 0.1},
    "passages": {101: 0.5, 102: 0.4, 401: 0.6, 6: 0.3},
    "equal": {1: 0.5, 4: 0.5, 6: 0.5, 7: 0.5},
    "many": {1: 0.95, 6: 0.9, 7: 0.85, **{i: 0.8 - i / 50 for i in range(10, 20)}, 4: 0.35, 2: 0.05},
}

EMPTY = FakeStore()
LACKING = FakeStore(Memory(1, "fusion", ("",)), Memory(2, "lists", ("",)), no_embedder="there is no model")
"""A store without texts, vectors or a model."""


@dataclass(frozen=True)
class Sample:
    """A store, queries to it, and pools given by the ids and scores of their rows.

    Each component must make a difference to some query or pool; one that uses facts which the memories of
    `sample_store` lack needs another store.
    """

    store: FakeStore = field(default_factory=sample_store)
    questions: tuple[Query, ...] = QUESTIONS
    pools: Mapping[str, Mapping[int, float]] = field(default_factory=lambda: POOLS)

    @cached_property
    def holed(self) -> FakeStore:
        """The store with rows of removed entries in its indexes."""
        return self.store.with_holes(3)

    @cached_property
    def encoded(self) -> FakeStore:
        """The store with the vectors of a sentence encoder."""
        return self.store.encoded()

    def pools_for(self, entry: RegisteredComponent) -> list[Pool]:
        """The pools on a scale that the component accepts; memory 4 is the only row that the graph channel returned."""
        return [pooled(self.store, scores, entry) for scores in self.pools.values()]


def pooled(store: FakeStore, scores: Mapping[int, float], entry: RegisteredComponent) -> Pool:
    """A pool of the store on a scale that the component accepts."""
    scale = entry.about.needs[0] if entry.about.needs else Scale.UNIT
    best_first = sorted(scores, key=lambda i: -scores[i])
    found = {"vector": [i for i in best_first if i != 4], "graph": [i for i in best_first if i == 4]}
    raw = {channel: {i: scores[i] for i in ids} for channel, ids in found.items()}
    return pool_of(store, scores, scale=scale, found=found, raw=raw)
