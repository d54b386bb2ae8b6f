"""Maximal marginal relevance: avoids rows that repeat each other."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params

BY_INTENT = {
    "add_feature": 0.70,
    "fix_bug": 0.85,
    "refactor": 0.60,
    "security_audit": 0.75,
    "understand": 0.50,
    "find_spec": 0.50,
    "find_decision": 0.50,
}
_DIGITS = 7
"""Similarities are rounded, so that the order does not depend on the last bits of a matrix product."""


Share = Annotated[float, Field(ge=0, le=1)]


class MmrParams(Params):
    """The weight of relevance against diversity."""

    lambda_: Share | Literal["by_intent"] = Field(
        0.7,
        alias="lambda",
        description="Weight of relevance against diversity, in [0, 1], or 'by_intent'.",
        json_schema_extra={"tunable": [0.5, 1.0]},
    )
    by_intent: dict[str, Share] = Field(BY_INTENT, description="λ per intent, for 'by_intent'.")
    default_lambda: float = Field(
        0.7, ge=0, le=1, description="λ for intents without an entry, or below `min_confidence`."
    )
    min_confidence: float = Field(0.3, ge=0, le=1, description="Minimum confidence in the intent for 'by_intent'.")
    pool: int = Field(20, ge=2, le=200, description="Number of diversified rows.")
    min_rows: int = Field(2, ge=2, le=200, description="Pools with fewer rows are unchanged.")


class Mmr:
    """Orders the best rows by λ · relevance - (1 - λ) · similarity to the rows above.

    Greedy selection (Carbonell and Goldstein 1998). Relevance is the score in [0, 1]; similarity is the cosine of the
    vectors of the matched passages, clipped at 0. A row without a vector has similarity 0 to all and is never dropped.

    The score of a row is its marginal value when it was selected. These values do not increase: a candidate's
    similarity to the selected set can only grow with the set, so its value can only fall, and each selection takes the
    largest value of fewer candidates. Ties go to the smaller id, both in the selection and in the order. A row below
    the pool gets λ · relevance - (1 - λ), the lowest value that its relevance allows, so it cannot pass a selected one.
    Feature R2.
    """

    about = About(features=("R2",), needs=(Scale.UNIT,), gives=Scale.MARGINAL)
    Params = MmrParams

    def __init__(self, params: MmrParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """The marginal value of every row."""
        p, relevance = self._params, pool.score
        weight = self._lambda(query)
        similarity = np.ones(len(pool))
        top = min(p.pool, len(pool))
        if top < p.min_rows:
            similarity[:] = 0.0
        elif store.vectors.dimensions == 0:
            return Unavailable("the store holds no vectors")
        else:
            # between: (top, top), cosines of the matched passages
            vectors = store.vectors.vectors(pool.candidates.matched[:top]).astype(np.float64)
            between = np.asarray(np.round(np.clip(vectors @ vectors.T, 0.0, 1.0), _DIGITS), np.float64)
            similarity[:top] = _selected(relevance[:top], between, weight, pool.ids[:top])
        how = "weight * before - (1 - weight) * similarity"
        return Rescored.by(relevance, how, weight=weight, similarity=similarity)

    def _lambda(self, query: Query) -> float:
        p, plan = self._params, query.plan
        if p.lambda_ != "by_intent":
            return float(p.lambda_)
        if plan.intent_confidence < p.min_confidence:
            return p.default_lambda
        return p.by_intent.get(plan.intent, p.default_lambda)


def _selected(relevance: Column, between: Column, weight: float, ids: Ids) -> Column:
    """The similarity of each row, when it is selected, to the nearest of the rows selected before.

    `between` float64[n, n] holds the similarities between the rows.
    """
    when_taken, nearest = np.empty(len(relevance)), np.zeros(len(relevance))
    gain = weight * relevance
    # `argmax` returns the first of equal values; in the order of ids, ties go to the smaller id.
    by_id = np.argsort(ids)
    left = np.ones(len(relevance), np.bool_)
    for _ in range(len(relevance)):
        marginal = np.where(left, gain - (1.0 - weight) * nearest, -np.inf)
        taken = by_id[np.argmax(marginal[by_id])]
        when_taken[taken], left[taken] = nearest[taken], False
        # Only the row just selected can be nearer than before, so n selections cost n² instead of n³.
        nearest = np.maximum(nearest, between[:, taken])
    return when_taken
