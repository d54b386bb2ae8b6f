"""Standardisation as a step."""

from __future__ import annotations

from speckit_memory.pipeline.arithmetic import standardise
from speckit_memory.pipeline.contracts import About, NoParams
from speckit_memory.pipeline.model import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.scales import Scale


class Standardise:
    """Expresses the scores of the pool in standard deviations from their mean, for steps that count in them.

    (score - mean) / deviation over the pool; 0 for each when all are equal. The order stays. Feature F4.
    """

    about = About(features=("F4",), gives=Scale.Z_SCORE)
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The standardised scores."""
        return Rescored(standardise(pool.score))
