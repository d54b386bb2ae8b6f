"""Memories or passages whose vectors point in the direction of the query's."""

from __future__ import annotations

from functools import reduce

import numpy as np
from pydantic import Field

from pipeline.arithmetic import positions
from pipeline.contracts import About, ChannelParams
from pipeline.model import Hits, Query
from pipeline.ports import Column, Ids, Level, Scope, Store, Unavailable
from pipeline.scales import Scale


class VectorParams(ChannelParams):
    """Parameters of the vector channel."""

    level: Level = Field("memory", description="What is found: whole memories (by their best passage) or passages.")
    min_similarity: float = Field(
        0.0, ge=-1, le=1, description="Cosine similarity below which nothing is found.",
        json_schema_extra={"tunable": [0.0, 0.5]},
    )  # fmt: skip


class Vector:
    """Exact cosine similarity between the query and every passage.

    With `query.concepts` (2–5 of them) every concept must reach `min_similarity`, and the score is the mean of their
    similarities. Scores are cosines, [-1, 1]; a text without a known word finds nothing. Feature C1.
    """

    about = About(features=("C1",), gives=Scale.COSINE)
    Params = VectorParams

    def __init__(self, params: VectorParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        """The `limit` nearest admitted memories or passages."""
        if not store.vectors.dimensions:
            return Unavailable("the store holds no vectors yet")
        scope = store.attributes.scope(query.wanted, query.now)
        if query.concepts:
            return self._all_concepts(query, limit, scope, store)
        found = self._one(query.text, limit, self._floor(query), scope, store)
        if isinstance(found, Unavailable):
            return found
        ids, similarities, passages = found
        return Hits(ids, similarities, Scale.COSINE, self._params.level, passages)

    def _floor(self, query: Query) -> float:
        wanted = query.plan.min_similarity
        return self._params.min_similarity if wanted is None else wanted

    def _one(
        self, text: str, limit: int, floor: float, scope: Scope, store: Store
    ) -> tuple[Ids, Column, Ids] | Unavailable:
        vector = store.vectors.embed(text)
        if isinstance(vector, Unavailable):
            return vector
        if not np.any(vector):
            return np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
        ids, similarities, passages = store.vectors.nearest(vector, limit, scope, self._params.level)
        near = similarities >= floor
        return ids[near], similarities[near], passages[near]

    def _all_concepts(self, query: Query, limit: int, scope: Scope, store: Store) -> Hits | Unavailable:
        """The intersection of the concepts' hits. Each concept must see all rows: the mean may favour any of them."""
        every = scope.size if self._params.level == "memory" else np.iinfo(np.int32).max
        lists = []
        for concept in query.concepts:
            found = self._one(concept, every, self._floor(query), scope, store)
            if isinstance(found, Unavailable):
                return found
            lists.append(found)
        common = reduce(np.intersect1d, (ids for ids, _, _ in lists))
        rows = [positions(common, ids) for ids, _, _ in lists]
        mean = np.mean([found[1][at] for found, at in zip(lists, rows, strict=True)], axis=0)
        best = lists[0][2][rows[0]]
        return Hits.ordered(common, mean, Scale.COSINE, limit=limit, level=self._params.level, passages=best)
