"""Results from several regions of the causal graph rather than many from one."""

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
    """How much worse a row from an unseen region may be."""

    share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="An unseen region is preferred above this share of the next best score.",
        json_schema_extra={"tunable": [0.3, 1.0]},
    )
    top: int = Field(20, ge=2, le=100, description="How many first places are looked at.")


class ContextDiversity:
    """Prefers a row from an unseen region of the causal graph, if it scores above half of the next best.

    Places are filled from the top. Where the next best row lies in a region that stands above already, the best
    row of an unseen region takes the place, if it scores more than half. A memory without causal links is a
    region of its own. Every row gets the score of the place it takes, so that order and scores agree. Needs
    scores that are not negative. Feature R7.
    """

    about = About(features=("R7",), needs=(Scale.UNIT, Scale.BOOST))
    Params = ContextDiversityParams

    def __init__(self, params: ContextDiversityParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The scores of the new order."""
        top = min(self._params.top, len(pool))
        regions = store.graph.regions(pool.candidates.parents[:top])
        alone = -1 - np.arange(top)
        first = self._order(pool.score[:top], np.where(regions < 0, alone, regions))
        return by_place(pool.score, np.concatenate([first, np.arange(top, len(pool))]))

    def _order(self, scores: Column, regions: Ids) -> NDArray[np.intp]:
        order: list[int] = []
        left = np.ones(len(scores), np.bool_)
        seen = np.zeros(len(scores), np.bool_)
        for _ in range(len(scores)):
            row = int(np.argmax(left))
            fresh = left & ~seen & (scores > self._params.share * scores[row])
            if fresh.any():
                row = int(np.argmax(fresh))
            order.append(row)
            left[row] = False
            seen |= regions == regions[row]
        return np.array(order, np.intp)
