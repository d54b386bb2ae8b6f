"""Memories or passages by the cosine similarity of their vectors to the query's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np
from pydantic import Field

from speckit_memory.memory.store.read_model.vectors.matrix import GATHERED_SHARE
from speckit_memory.pipeline.arithmetic import distinct, positions
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Level, Scope, Store, Unavailable, Vectors
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, PipelineContext


class VectorParams(ChannelParams):
    """Parameters of the vector channel."""

    level: Level = Field("memory", description="What is returned: memories (by their best passage) or passages.")
    min_similarity: float = Field(
        0.0,
        ge=-1,
        le=1,
        description="Minimum cosine similarity of a hit.",
        json_schema_extra={"tunable": [0.0, 0.5]},
    )
    min_concept_similarity: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="Minimum cosine similarity at which a memory matches a concept without holding its words. "
        "Default: 0.35 for the bundled vectors; for other models only words decide until this is set.",
    )
    context: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the better neighbour's score that a short note of the same folder adds.",
        json_schema_extra={"tunable": [0.0, 0.4]},
    )


STATIC_CONCEPT = 0.35
"""Measured with the bundled vectors on three collections: 95 to 100 % of documents are this similar to their own title,
7 to 9 % to the title of another, and 0.03 % to an unrelated subject (docs/decisions/0017-what-every-row-must-be.md)."""

_DECIMALS = 7
"""Similarities are rounded to this many decimals, as the store rounds its own."""

Found = tuple[Ids, Column, Ids]
"""Ids, similarities and best passages, aligned."""


class Vector:
    """Exact cosine similarity between the query and every passage.

    With `query.concepts` (2–5 of them) every concept must reach `min_similarity`, and the score is the mean of their
    similarities. If the query has a text in addition to the concepts, the score is the similarity to that text. The
    admitted memories are determined beforehand: those that hold the words of each concept, or reach
    `min_concept_similarity` for it. Scores are cosines, [-1, 1]; a text without a known word finds nothing.

    A short note may say little without the one before it: with `context` each memory that has neighbours (see
    `pipeline.ports.Attributes.neighbours`) adds that share of the better neighbour's cosine. All scores are then
    divided by 1 + context, which keeps them in [-1, 1] and changes no order. Only the nearest memories and their
    neighbours are considered. A neighbour that the query may not see adds nothing. Feature C1.
    """

    about = About(features=("C1",), gives=Scale.COSINE, costly=True)
    Params = VectorParams

    def __init__(self, params: VectorParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: VectorParams, _: PipelineContext) -> Iterable[tuple[tuple[str, ...], str]]:
        """Passages have no neighbours."""
        if params.level == "chunk" and params.context:
            yield ("context",), "passages have no neighbours; use level memory or context 0"

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        """The `limit` nearest admitted memories or passages."""
        if not store.vectors.dimensions:
            return Unavailable("the store holds no vectors yet")
        scope = store.attributes.scope(query.wanted, query.now)
        if query.concepts:
            return self._all_concepts(query, limit, scope, store)
        found = self._one(query.reading, limit, self._floor(query), scope, store)
        if isinstance(found, Unavailable):
            return found
        ids, scores, passages = found
        return self._hits(ids, scores, passages, limit, self._floor(query))

    def _hits(self, ids: Ids, scores: Column, passages: Ids, limit: int, floor: float) -> Hits:
        """The hits. All other rows are below the floor; without a floor, the other rows have no vector."""
        rest = floor / (1.0 + self._params.context) if floor > -1.0 else np.nan
        return Hits.ordered(
            ids, scores, Scale.COSINE, limit=limit, level=self._params.level, passages=passages, rest=rest
        )

    def about_concept(self, concept: str, query: Query, store: Store) -> Ids | Unavailable:
        """The admitted memories with a passage that reaches `min_concept_similarity`."""
        floor = self._params.min_concept_similarity
        if floor is None and not store.vectors.static:
            return np.empty(0, np.int64)
        if not store.vectors.dimensions:
            return Unavailable("the store holds no vectors yet")
        vector = store.vectors.embed(concept)
        if isinstance(vector, Unavailable):
            return vector
        scope = store.attributes.scope(query.wanted, query.now)
        # A limit of scope.size returns every admitted memory.
        ids, similarities, _ = store.vectors.nearest(vector, scope.size, scope, "memory")
        near: Ids = ids[similarities >= (STATIC_CONCEPT if floor is None else floor)]
        return near

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The number of compared vectors: all, unless the filter admits only a small share of the store."""
        if not store.vectors.dimensions:
            return StepCostEstimate()
        passages = store.lexicon.index("body", "chunk").ids
        passages = passages[passages >= 0]
        scope = store.attributes.scope(query.wanted, query.now)
        if scope.size > GATHERED_SHARE * store.attributes.count:
            return StepCostEstimate(vectors=len(passages))
        return StepCostEstimate(vectors=int(np.count_nonzero(scope.admits(passages))))

    def _floor(self, query: Query) -> float:
        own, relaxed = self._params.min_similarity, query.plan.min_similarity
        return own if relaxed is None else min(own, relaxed)

    def _one(self, text: str, limit: int, floor: float, scope: Scope, store: Store) -> Found | Unavailable:
        vector = store.vectors.embed(text)
        if isinstance(vector, Unavailable):
            return vector
        if not np.any(vector):
            return np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
        ids, similarities, passages = store.vectors.nearest(vector, limit, scope, self._params.level)
        near = similarities >= floor
        found = ids[near], similarities[near], passages[near]
        return self._in_context(found, vector, floor, scope, store) if self._params.context else found

    def _in_context(self, found: Found, vector: Vectors, floor: float, scope: Scope, store: Store) -> Found:
        """The hits and their admitted neighbours, each the weighted mean of itself and its better neighbour."""
        ids, similarities, passages = found
        share = self._params.context
        neighbours = np.concatenate(store.attributes.neighbours(ids))
        neighbours = neighbours[neighbours >= 0]
        if not len(neighbours):
            return ids, similarities / (1.0 + share), passages
        neighbours = distinct(neighbours[~np.isin(neighbours, ids)])
        if len(neighbours):
            # A memory with neighbours is short, so its passage is the memory itself.
            cosines = _cosines(neighbours, vector, store)
            near = (cosines >= floor) & scope.admits(neighbours)
            ids, passages = np.append(ids, neighbours[near]), np.append(passages, neighbours[near])
            similarities = np.append(similarities, cosines[near])
        # From here on `ids` are the hits and their admitted neighbours, which may link to further neighbours.
        previous, following = store.attributes.neighbours(ids)
        linked = np.flatnonzero((previous >= 0) | (following >= 0))
        # -1 for neighbours that the query may not see; `_cosines` gives 0 for them.
        sides = (np.where(scope.admits(side), side, -1) for side in (previous[linked], following[linked]))
        better = np.maximum(*(_cosines(side, vector, store) for side in sides))
        from_neighbour = np.zeros(len(ids))
        from_neighbour[linked] = np.maximum(better, 0.0)
        # Always divided: scores of one channel must mean the same for every row and query.
        return ids, (similarities + share * from_neighbour) / (1.0 + share), passages

    def _all_concepts(self, query: Query, limit: int, scope: Scope, store: Store) -> Hits | Unavailable:
        """The intersection of the concepts' hits. Each concept is searched in all rows: the mean may favour any."""
        wanted = [(concept, self._floor(query)) for concept in query.concepts]
        ranking = [] if query.text in ("", " ".join(query.concepts)) else [(query.text, -1.0)]
        # no limit on passages either: the intersection needs every row
        every = scope.size if self._params.level == "memory" else np.iinfo(np.int32).max
        lists = []
        for text, floor in (*ranking, *wanted):
            found = self._one(text, every, floor, scope, store)
            if isinstance(found, Unavailable):
                return found
            lists.append(found)
        # lists: one (ids, similarities, passages) per text; the rows of each are aligned to the common ids
        common = reduce(np.intersect1d, (ids for ids, _, _ in lists))
        rows = [positions(common, ids) for ids, _, _ in lists]
        ranking_lists = lists[: len(ranking) or len(lists)]
        mean = np.mean([found[1][at] for found, at in zip(ranking_lists, rows, strict=False)], axis=0)
        best = lists[0][2][rows[0]]
        return self._hits(common, mean, best, limit, self._floor(query))


def _cosines(memories: Ids, query: Vectors, store: Store) -> Column:
    """The cosine similarity of each memory to the query, float64[n]; 0 for no memory (-1)."""
    known = memories >= 0
    cosines = np.zeros(len(memories))
    products = store.vectors.vectors(memories[known]) * query.astype(np.float64)
    cosines[known] = products.sum(axis=1).round(_DECIMALS)
    return cosines
