"""Prefers results from several regions of the causal graph to many from one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query, Reranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params
from speckit_memory.stages.rerank._places import by_place


class ContextDiversityParams(Params):
    """How much lower a row from a new region may score."""

    share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="A new region is preferred above this share of the next best score.",
        json_schema_extra={"tunable": [0.3, 1.0]},
    )
    top: int = Field(20, ge=2, le=100, description="Number of first places that are reordered.")


class ContextDiversity:
    """Prefers a row from a new region of the causal graph, if it scores above half of the next best.

    Places are filled from the top. If the next best row is in a region that is already represented above, the best row
    of a new region takes the place, if it scores more than half. A memory without causal links is a separate region.
    Every row gets the score of its new place, so that order and scores agree. Needs scores that are not negative.
    Feature R7.
    """

    about = About(features=("R7",), needs=(Scale.UNIT, Scale.BOOST))
    Params = ContextDiversityParams

    def __init__(self, params: ContextDiversityParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The scores of the new order."""
        top = min(self._params.top, len(pool))
        regions = store.graph.regions(pool.candidates.parents[:top])
        # A distinct negative number for each memory without edges.
        alone = -1 - np.arange(top)
        first = self._order(pool.score[:top], np.where(regions < 0, alone, regions))
        return by_place(pool.score, np.concatenate([first, np.arange(top, len(pool))]))

    def _order(self, scores: Column, regions: Ids) -> NDArray[np.intp]:
        order: list[int] = []
        left = np.ones(len(scores), np.bool_)
        seen = np.zeros(len(scores), np.bool_)
        for _ in range(len(scores)):
            # Rows are in order of score, so the first one left is the next best.
            row = int(np.argmax(left))
            fresh = left & ~seen & (scores > self._params.share * scores[row])
            if fresh.any():
                row = int(np.argmax(fresh))
            order.append(row)
            left[row] = False
            seen |= regions == regions[row]
        return np.array(order, np.intp)
