"""Late interaction over static token vectors: rescores the best rows without a model."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params

MOST_TOKENS = 1200
"""Maximum number of different query tokens, the rarest; a pasted page of 10,000 characters has up to 1,060."""
_DIGITS = 6
"""Similarities are rounded, so that the order does not depend on the last bits of a matrix product."""


class MaxsimParams(Params):
    """The number of rescored rows, and the weight of MaxSim."""

    pool: int = Field(
        20, ge=2, le=200, description="Number of rescored rows.", json_schema_extra={"tunable": [10, 100]}
    )
    gain: float = Field(
        3.0,
        ge=0,
        le=20,
        description="Standard deviations of the score per unit of MaxSim.",
        json_schema_extra={"tunable": [0.0, 6.0]},
    )
    idf_power: float = Field(
        0.5,
        ge=0,
        le=2,
        description="Exponent of idf in the weight of a query token.",
        json_schema_extra={"tunable": [0.0, 1.0]},
    )
    max_lead: float | None = Field(
        None,
        ge=0,
        description="Lead of the first row, in standard deviations, from which on nothing is rescored; "
        "null: always rescore.",
    )


class Maxsim:
    """Adds to the score of the best 20 rows how well the matched passage covers each word of the query.

    score + gain · (MaxSim - mean MaxSim of these rows), with MaxSim = Σ w_t · max_u cos(t, u) / Σ w_t over the distinct
    tokens t of the query and u of the passage with its title and headings, and w = √idf: late interaction (Khattab and
    Zaharia 2020), here over static vectors. Stop tokens have no weight, unless the query has no others. Rows below the
    20 keep their order and distances beneath them. Needs z scores, because the gain is in standard deviations.

    Rescoring can only harm if the first row is right: with `max_lead` it is skipped for queries whose first row leads
    by that much. Feature R1.
    """

    about = About(features=("R1",), needs=(Scale.Z_SCORE,), gives=Scale.Z_SCORE)
    Params = MaxsimParams

    def __init__(self, params: MaxsimParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """The rescored rows."""
        top, scores = min(self._params.pool, len(pool)), pool.score
        if self._leads_clearly(scores):
            return Rescored.by(scores, "before")
        asked = store.tokens.of_text(query.reading)
        if isinstance(asked, Unavailable):
            return asked
        if not len(asked) or not top:
            return Rescored.by(scores, "before")
        passages = pool.candidates.matched[:top]
        met = self._maxsim(asked, store.tokens.of_passages(passages), store)
        better, lowest = np.full(len(pool), np.nan), np.nan
        better[:top] = met - met.mean()
        distance = np.full(len(pool), np.nan)
        if top < len(pool):
            # one standard deviation below the lowest row of the second look
            lowest = (scores[:top] + self._params.gain * better[:top]).min() - 1.0
            distance[top:] = scores[top:] - scores[top]
        return Rescored.by(
            scores,
            "before + gain * better",
            "beneath + distance",
            gain=self._params.gain,
            better=better,
            beneath=lowest,
            distance=distance,
        )

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The passages of the rescored rows, if there is a token model."""
        without = isinstance(store.tokens.of_text(""), Unavailable)
        return StepCostEstimate() if without else StepCostEstimate(compared_passages=min(self._params.pool, rows))

    def _leads_clearly(self, scores: Column) -> bool:
        lead = self._params.max_lead
        return lead is not None and len(scores) > 1 and bool(scores[0] - scores[1] >= lead)

    def _maxsim(self, asked: Ids, held: list[Ids], store: Store) -> Column:
        """Σ w · best cosine / Σ w of each passage, in [-1, 1]; 0 for a passage without tokens."""
        idf = store.tokens.weights(asked)
        if len(asked) > MOST_TOKENS:
            rarest = np.sort(np.argsort(-idf, kind="stable")[:MOST_TOKENS])
            asked, idf = asked[rarest], idf[rarest]
        # 0 ** 0 is 1: the last factor leaves stop tokens without weight for an exponent of 0 too
        weights = np.where(idf > 0, idf, 0.0) ** self._params.idf_power * (idf > 0)
        weights = weights if weights.any() else np.ones(len(asked))
        met = np.zeros(len(held))
        sizes = np.array([len(of) for of in held])
        filled = sizes > 0
        if filled.any():
            # Passages of one answer share many tokens: each distinct one is compared with the query once. A table from
            # token to row avoids a sort.
            tokens = np.concatenate(held)
            seen = np.zeros(int(tokens.max()) + 1, np.bool_)
            seen[tokens] = True
            vocabulary = seen.nonzero()[0]
            place_of = np.empty(len(seen), np.intp)
            place_of[vocabulary] = np.arange(len(vocabulary))
            # similarity: (vocabulary, query tokens); best: (passages with tokens, query tokens)
            vectors = store.tokens.vectors(np.concatenate([vocabulary, asked]))
            similarity = vectors[: len(vocabulary)] @ vectors[len(vocabulary) :].T
            # One row per token of every passage, then the maximum over the rows of each passage. `reduceat` cannot
            # handle empty slices, so passages without tokens are excluded.
            start = (sizes.cumsum() - sizes)[filled]
            best = np.maximum.reduceat(similarity.take(place_of[tokens], axis=0), start, axis=0).astype(np.float64)
            met[filled] = (best * weights).sum(axis=1) / weights.sum()
        return np.round(met, _DIGITS)
