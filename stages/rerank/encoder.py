"""Rescores the best rows by the vectors of a sentence encoder."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import standardise
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class EncoderParams(Params):
    """The number of rescored rows, and the weight of the encoder."""

    pool: int = Field(
        20, ge=2, le=200, description="Number of rescored rows.", json_schema_extra={"tunable": [10, 100]}
    )
    weight: float = Field(
        0.5,
        ge=0,
        le=10,
        description="Weight of the cosine of a short memory against the score, both in standard deviations.",
        json_schema_extra={"tunable": [0.0, 2.0]},
    )
    passage_weight: float = Field(
        0.3,
        ge=0,
        le=10,
        description="The same for the matched passage of a long memory.",
        json_schema_extra={"tunable": [0.0, 2.0]},
    )


class Encoder:
    """Adds to the score of the best 20 rows their similarity to the query by a sentence encoder.

    score + weight · deviation of the scores · z, where z is the standardised cosine of these rows: of a short memory as
    one text, of a long one that of its best matching passage. So long memories have no more chances than others. All of
    them are lifted by the largest decrease, so that they stay above the other rows.

    The vectors are computed in the background: a row without one yet counts as a row with the mean cosine. If no
    encoder is configured, nothing changes. Feature R1.
    """

    about = About(features=("R1",), widens=True)
    Params = EncoderParams

    def __init__(self, params: EncoderParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """The rescored rows."""
        top, scores = min(self._params.pool, len(pool)), pool.score
        if not store.encoder.named or not top:
            return Rescored.by(scores, "before")
        found = store.encoder.closeness(query.reading, pool.candidates.matched[:top])
        if isinstance(found, Unavailable):
            return found
        cosines, whole = found
        z, weight = np.full(len(pool), np.nan), np.full(len(pool), np.nan)
        # NaN marks a row without a vector: 0 is the mean
        z[:top] = np.nan_to_num(standardise(cosines))
        weight[:top] = np.where(whole, self._params.weight, self._params.passage_weight)
        # σ of the scores times z gives both the same unit.
        spread = scores[:top].std()
        return Rescored.by(
            scores,
            "before + weight * spread * z + lift",
            "before",
            weight=weight,
            spread=spread,
            z=z,
            lift=-(weight[:top] * spread * z[:top]).min(),
        )

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The vectors of the rescored rows, if there is an encoder."""
        return StepCostEstimate(vectors=min(self._params.pool, rows)) if store.encoder.named else StepCostEstimate()
