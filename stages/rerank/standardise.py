"""Standardisation (z-scores) as a rerank step."""

from __future__ import annotations

from speckit_memory.pipeline.arithmetic import moments, standardise
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, NoParams


class Standardise:
    """Expresses the scores of the pool in standard deviations from their mean, for steps that need z scores.

    (score - mean) / deviation over the pool; 0 for each if all are equal. The order is unchanged. Feature F4.
    """

    about = About(features=("F4",), gives=Scale.Z_SCORE)
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The standardised scores."""
        scores = pool.score
        if len(pool) and scores.min() < scores.max():
            parts = dict(zip(("mean", "largest_distance", "spread"), moments(scores), strict=True))
            how = Workings.of(len(pool), ["(before - mean) / largest_distance / spread"], parts)
        else:
            how = Workings.of(len(pool), ["all_equal"], {"all_equal": 0.0})
        return Rescored(standardise(scores), how)
