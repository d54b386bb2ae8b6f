"""Queries, pools and sealed rankings for tests of single components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from speckit_memory.pipeline.guards.sealing import seal
from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Fused, Plan, Pool, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.running.apply import apply_fusion
from speckit_memory.pipeline.testing.memories import DAY, words
from speckit_memory.pipeline.testing.store import FakeStore

NOW = 1000 * DAY
"""The time of queries made by `ask`, in epoch seconds."""


def ask(text: str = "", **changes: Any) -> Query:
    """A query at the time `NOW`. `changes` are fields of the query; those of its plan are given as `plan_intent=…`."""
    plan = {key.removeprefix("plan_"): value for key, value in changes.items() if key.startswith("plan_")}
    rest = {key: value for key, value in changes.items() if not key.startswith("plan_")}
    return Query(**{"text": text, "now": NOW, "terms": words(text), "plan": Plan(variants=(text,), **plan), **rest})


def pool_of(
    store: FakeStore,
    scores: Mapping[int, float],
    *,
    scale: Scale = Scale.UNIT,
    found: Mapping[str, Sequence[int]] | None = None,
    raw: Mapping[str, Mapping[int, float]] | None = None,
) -> Pool:
    """A pool after fusion, of candidates with these scores.

    Args:
        store: The store that holds the memories.
        scores: Fused score by id of memory or chunk.
        scale: The scale of the scores.
        found: Ids returned by each channel, best first; default: one channel returned all, ordered by score.
        raw: Raw score of each id by channel; default: 1 / rank.
    """
    found = found if found is not None else {"vector": sorted(scores, key=lambda i: -scores[i])}
    ids = np.array(sorted(scores), np.int64)
    rank = np.full((len(ids), len(found)), NO_RANK, np.int32)
    values = np.full(rank.shape, np.nan)
    for at, (channel, hits) in enumerate(found.items()):
        for place, hit in enumerate(hits, start=1):
            row = int(np.searchsorted(ids, hit))
            rank[row, at] = place
            values[row, at] = raw[channel][hit] if raw else 1.0 / place
    candidates = Candidates(
        ids=ids,
        parents=store.attributes.parents(ids),
        passages=np.array(
            [i if int(i) in store.memories[store.parent[int(i)]].chunk_ids else -1 for i in ids], np.int64
        ),
        updated_at=store.attributes.number("updated_at", ids),
        channels=tuple(found),
        variants=(0,) * len(found),
        scales=(scale,) * len(found),
        rest=np.full(len(found), np.nan),
        raw=values,
        rank=rank,
    )
    column = np.array([scores[int(i)] for i in ids], np.float64)
    return apply_fusion("fuse", scale, candidates, Fused(("fuse",), column[:, None]))


def ranking_of(store: FakeStore, scores: Mapping[int, float], **options: Any) -> Ranking:
    """The sealed ranking that an annotator sees; `options` are those of `pool_of`."""
    return seal(pool_of(store, scores, **options))
