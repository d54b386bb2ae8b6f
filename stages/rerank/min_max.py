"""Min-max normalisation as a rerank step."""

from __future__ import annotations

import numpy as np

from speckit_memory.pipeline.arithmetic import min_max
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, NoParams


class MinMax:
    """Maps the scores of the pool linearly to [0, 1], for later steps that need that scale.

    (score - min) / (max - min); a pool of equal scores, or of one row, becomes 1.0. The order is unchanged. Feature F4.
    """

    about = About(features=("F4",), gives=Scale.UNIT)
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The normalised scores."""
        scores = pool.score
        low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
        if low < high:
            how = Workings.of(len(pool), ["(before - low) / (high - low)"], {"low": low, "high": high})
        else:
            how = Workings.of(len(pool), ["all_equal"], {"all_equal": 1.0})
        return Rescored(min_max(scores), how)
