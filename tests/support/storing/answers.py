"""What every port of a store says about everything: two states are equal when all of this is."""

from __future__ import annotations

from typing import Any

import numpy as np
from storing.models import WORDS

from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.pipeline.ports import Field, Filter, Level

NOW = 1000.0
WEIGHTS = {"caused": 1.0, "supports": 0.5}
PARTS: list[tuple[Field, Level]] = [
    ("title", "memory"),
    ("triggers", "memory"),
    ("path", "memory"),
    ("body", "memory"),
    ("body", "chunk"),
]


def postings(store: Snapshot, field: Field, level: Level) -> dict[str, list[tuple[int, float, float]]]:
    """Id, frequency and length of each entry of each word: what an index says, without its row numbers."""
    index = store.lexicon.index(field, level)
    found = {word: index.postings(word) for word in (*WORDS, "title", "phrase")}
    return {
        word: sorted(zip(index.ids[p.rows].tolist(), p.frequency.tolist(), index.lengths[p.rows].tolist(), strict=True))
        for word, p in found.items()
    }


def answers(store: Snapshot) -> dict[str, Any]:
    """What every port of a store says about everything."""
    attributes = store.attributes
    scopes = [attributes.scope(wanted, NOW) for wanted in (Filter(), Filter(folder="a"), Filter(tier="critical"))]
    query = np.array([0.5, 0.5, -0.5, 0.5], np.float32)
    ids = np.arange(1, 60)
    known = ids[attributes.parents(ids) >= 0]
    neighbours = store.graph.neighbours(known, 2, WEIGHTS)
    sizes = [store.lexicon.index(*part).count for part in PARTS]
    return {
        "count": attributes.count,
        "parents": attributes.parents(ids).tolist(),
        "numbers": repr([attributes.number(name, ids).tolist() for name in ("access_count", "characters")]),
        "labels": [attributes.label(name, ids).tolist() for name in ("key", "folder", "tier", "content_hash")],
        "scopes": [(scope.size, scope.complete, scope.admits(ids).tolist()) for scope in scopes],
        "critical": attributes.of_tier("critical").tolist(),
        "indexes": {part: postings(store, *part) for part in PARTS},
        "sizes": sizes,
        "dimensions": store.vectors.dimensions,
        "nearest": [
            [column.tolist() for column in store.vectors.nearest(query, 5, scope, level)]
            for scope in scopes
            for level in ("memory", "chunk")
        ],
        "vectors": store.vectors.vectors(known).tolist(),
        "tokens": [tokens.tolist() for tokens in store.tokens.of_passages(ids)],
        "weights": store.tokens.weights(np.arange(len(WORDS))).tolist(),
        "query": np.asarray(store.vectors.embed("alpha beta")).tolist(),
        "fulltext": [
            [column.tolist() for column in store.fulltext.match(WORDS[:2], (10, 5, 2, 1), 5, scope)] for scope in scopes
        ],
        "passages": store.passages.passages(ids.tolist()),
        "texts": [(store.passages.of_memory(id_), store.passages.body(id_)) for id_ in known.tolist()],
        "edges": store.graph.edge_count,
        "neighbours": [c.tolist() for c in (neighbours.seeds, neighbours.ids, neighbours.hops, neighbours.product)],
        "degrees": [column.tolist() for column in store.graph.degrees(WEIGHTS)],
        "ranks": [np.asarray(part).tolist() for part in store.graph.ranks(known)],
        "communities": [store.graph.community(memory, 3).tolist() for memory in known.tolist()],
        "caused": [ends.tolist() for ends in store.graph.in_edges(known, "caused")],
        "regions": store.graph.regions(ids).tolist(),
        "triggers": [store.triggers.exact(word) for word in WORDS],
        "matches": [column.tolist() for column in store.triggers.matches(" ".join(WORDS), NOW)],
        "folders": store.folders.described(),
        "sent": store.sessions.texts_sent("session", ids, NOW),
        "attention": store.sessions.attention("session", ids, NOW).tolist(),
    }
