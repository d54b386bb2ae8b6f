"""Score regularisation: passages that resemble each other get similar scores."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params

_DIGITS = 7
"""Similarities are rounded, so that the order does not depend on the last bits of a matrix product."""


class RegulariseParams(Params):
    """The weight and number of neighbours."""

    weight: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Weight of the neighbours' scores against the row's own.",
        json_schema_extra={"tunable": [0.0, 0.5]},
    )
    neighbours: int = Field(
        10,
        ge=1,
        le=100,
        description="Number of most similar rows used for a row.",
        json_schema_extra={"tunable": [3, 30]},
    )


class Regularise:
    """Moves the score of each row towards the scores of similar rows.

    score' = (1 - weight) · score + weight · Σ cos · score / Σ cos over the 10 rows whose matched passages are most
    similar. By the cluster hypothesis, passages similar to relevant ones are relevant (score regularisation, Diaz
    2005). Rows that tie with the tenth count too; negative similarities count 0; a row without similar rows keeps its
    score. The scale is unchanged: every new score is a weighted mean of scores. Feature R1.
    """

    about = About(features=("R1",))
    Params = RegulariseParams

    def __init__(self, params: RegulariseParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The regularised scores."""
        if store.vectors.dimensions == 0:
            return Unavailable("the store holds no vectors")
        weight, scores = self._params.weight, pool.score
        # (n, dimensions) float32, unit vectors; zeros for a row without one
        vectors = store.vectors.vectors(pool.candidates.matched)
        # closeness: (n, n), cosines with a diagonal of 0
        closeness = np.round((vectors @ vectors.T).astype(np.float64), _DIGITS)
        np.fill_diagonal(closeness, 0.0)
        np.maximum(closeness, 0.0, out=closeness)
        if len(pool) > self._params.neighbours:
            # least: (n,), the similarity of the last neighbour that counts; ties with it stay
            least = np.partition(closeness, -self._params.neighbours, axis=1)[:, -self._params.neighbours]
            # for a matrix of this size `np.where` takes a tenth of the time of assignment by mask
            closeness = np.where(closeness < least[:, None], 0.0, closeness)
        total = closeness.sum(axis=1)
        mean = (closeness * scores).sum(axis=1) / np.where(total > 0, total, 1.0)
        neighbours = np.where(total > 0, mean, np.nan)
        how = "(1 - weight) * before + weight * neighbours"
        return Rescored.by(scores, how, "before", weight=weight, neighbours=neighbours)
