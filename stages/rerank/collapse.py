"""Collapses the passages of each memory into one result."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Grouped, Pool, Query, Reranking
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params

_BEST = 3


class CollapseParams(Params):
    """How the scores of a memory's passages are combined."""

    aggregate: Literal["mpab", "max", "mean_top3"] = Field(
        "mpab",
        description="mpab: the best passage plus a bonus for the others; max: the best one; mean_top3: the best three.",
    )
    factor: float = Field(
        0.3, ge=0, le=2, description="Weight of the other passages in mpab.", json_schema_extra={"tunable": [0.0, 0.6]}
    )


class Collapse:
    """Makes one row of all passages of a memory.

    `mpab` is max + factor · Σ rest / √n over the n other passages: exactly one instance of the maximum is excluded from
    the rest, so that two equal passages count as two; a single passage keeps its score. Passages with negative scores
    (as on the z scale) add nothing, so that a further passage never lowers a memory. The row keeps the text and the
    provenance of its best passage, and `chunk_hits` counts the passages. Features R3 and R4. Novelty must be added
    before (feature P7), because it belongs to the passages' own scores.
    """

    about = About(features=("R3", "R4"), groups=True, widens=True)
    Params = CollapseParams

    def __init__(self, params: CollapseParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The memory of each row and its score."""
        parents = pool.candidates.parents
        # The pool is in total order: within a memory the best passage comes first.
        by_memory = np.argsort(parents, kind="stable")
        # -2 is no id, so the first row always begins a memory
        # start: (memories,), where each memory's rows begin in `by_memory`; sizes: its number of rows
        start = np.flatnonzero(np.diff(parents[by_memory], prepend=-2))
        sizes = np.diff(start, append=len(pool))
        scores = pool.score[by_memory]
        if self._params.aggregate == "max" or not len(pool):
            how, parts = "before", {}
        elif self._params.aggregate == "mean_top3":
            place = np.arange(len(pool)) - np.repeat(start, sizes)
            best = np.add.reduceat(np.where(place < _BEST, scores, 0.0), start)
            how, parts = "best / count", {"best": best, "count": np.minimum(sizes, _BEST).astype(np.float64)}
        else:
            rest = np.maximum(scores, 0.0)
            # The first passage of each memory is its maximum, which is not part of the rest.
            rest[start] = 0.0
            root = np.sqrt(np.maximum(sizes - 1, 1))
            how = "before + factor * others / root_of_count"
            parts = {"others": np.add.reduceat(rest, start), "root_of_count": root}
        workings = Workings.of(len(start), [how], parts | {"factor": self._params.factor})
        collapsed, memory_of = np.empty(len(pool)), np.empty(len(pool), np.intp)
        collapsed[by_memory] = np.repeat(workings.scores(scores[start]), sizes)
        memory_of[by_memory] = np.repeat(np.arange(len(start)), sizes)
        return Grouped(parents, collapsed, workings.take(memory_of))
