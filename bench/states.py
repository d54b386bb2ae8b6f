"""What a state of a store says when it is read from a segment, beside what its tables say in the same transaction."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from speckit_memory.engine import Memory
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.state.read_point import committed_read
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.segment_writing.building import build_in_memory
from speckit_memory.pipeline.ports import Filter

WORDS = 12
NOW = 1_800_000_000.0


def differences(memory: Memory, draw: random.Random) -> tuple[str, list[str]]:
    """Where the latest state came from ("segment", "segment and changes" or "tables"), and what of it is not as its
    tables have it; both are read in one transaction."""
    opened = memory.session.opened
    models = opened.read_model._models
    with committed_read(opened.database) as connection:
        held = SegmentStore(opened.database).status(patient=True)
        now = Snapshot.load(opened.database, connection, models, build_in_memory)
        tables = Snapshot.of_file(opened.database, connection, models)
        assert tables is not None
        words = draw.sample(sorted(tables.lexicon.words()), WORDS)
        seed = draw.randrange(2**32)
        one, other = (said(state, words, seed) for state in (now, tables))
    source = "tables" if held.segment is None else "segment and changes" if held.behind else "segment"
    return source, [name for name in other if one[name] != other[name]]


def said(state: Snapshot, words: list[str], seed: int) -> dict[str, Any]:
    """Values that are equal where two states say the same."""
    ids = state.attributes.ids
    size = state.vectors.dimensions
    scope = state.attributes.scope(Filter(), NOW)
    query = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    index = state.lexicon.index("body")
    held = {word: index.postings(word) for word in words}
    return {
        "ids": ids.tolist(),
        "keys": state.attributes.label("key", ids).tolist(),
        "numbers": repr(state.attributes.number("updated_at", ids).tolist()),  # unknown ones are NaN
        "postings": {
            word: sorted(zip(index.ids[found.rows].tolist(), found.frequency.tolist(), strict=True))
            for word, found in held.items()
        },
        "phrases": [column.tolist() for column in state.triggers.matches(" ".join(words), NOW)],
        "nearest": [column.tolist() for column in state.vectors.nearest(query, 20, scope, "memory")],
    }
