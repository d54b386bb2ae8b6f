"""Late interaction over static token vectors: a second look at the best rows without a model."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from pipeline.arithmetic import standardise
from pipeline.contracts import About, Params
from pipeline.model import Pool, Query, Reranking, Rescored
from pipeline.ports import Column, Ids, Store, Unavailable
from pipeline.scales import Scale

_DIGITS = 6
"""Similarities are rounded, so that the order does not hang on the last bits of a matrix product."""


class MaxsimParams(Params):
    """How many rows get the second look, and how much it counts."""

    pool: int = Field(20, ge=2, le=200, description="How many rows are rescored.")
    weight: float = Field(
        0.3, ge=0, le=1, description="Weight of the second look against the score before it.",
        json_schema_extra={"tunable": [0.0, 0.6]},
    )  # fmt: skip


class Maxsim:
    """Blends the score of the best 20 rows with how well each word of the query is met in the matched passage.

    MaxSim = Σ idf_t · max_u cos(t, u) / Σ idf_t over the distinct tokens t of the query and u of the passage
    with its title and headings (late interaction, Khattab and Zaharia 2020, here over static vectors). Stop
    tokens weigh nothing, unless the query has no other. Score and MaxSim are standardised over these rows, then
    blended as (1 - weight) · z(score) + weight · z(MaxSim). Rows below keep their order beneath them. Feature
    R1.
    """

    about = About(features=("R1",), gives=Scale.Z_SCORE)
    Params = MaxsimParams

    def __init__(self, params: MaxsimParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """The blended scores."""
        asked = store.tokens.of_text(query.text)
        if isinstance(asked, Unavailable):
            return asked
        top, weight = min(self._params.pool, len(pool)), self._params.weight
        passages = np.where(pool.candidates.passages >= 0, pool.candidates.passages, pool.ids)[:top]
        scores = pool.score
        blended = np.empty(len(pool))
        blended[:top] = (1.0 - weight) * standardise(scores[:top])
        if len(asked) and top:
            blended[:top] += weight * standardise(_maxsim(asked, store.tokens.of_passages(passages), store))
        if top < len(pool):
            # one step on the scale of the scores below the lowest rescored row
            blended[top:] = blended[:top].min() - 1.0 + (scores[top:] - scores[top])
        return Rescored(blended)


def _maxsim(asked: Ids, held: list[Ids], store: Store) -> Column:
    """Σ idf · best cosine / Σ idf of each passage, in [-1, 1]; 0 for a passage without tokens."""
    weights = store.tokens.weights(asked)
    weights = weights if weights.sum() > 0 else np.ones(len(asked))
    vocabulary, place = np.unique(np.concatenate(held), return_inverse=True)
    found = np.zeros(len(held))
    filled = np.array([len(tokens) > 0 for tokens in held], np.bool_)
    if filled.any():
        similarity = store.tokens.vectors(asked) @ store.tokens.vectors(vocabulary).T
        start = np.cumsum([0, *(len(tokens) for tokens in held if len(tokens))])[:-1]
        best = np.maximum.reduceat(similarity[:, place], start, axis=1).astype(np.float64)
        found[filled] = (weights[:, None] * best).sum(axis=0) / weights.sum()
    return np.round(found, _DIGITS)
