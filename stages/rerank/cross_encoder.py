"""Rescores the best rows with the cross-encoder that the user has configured."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Rescored
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class CrossEncoderParams(Params):
    """The number of rescored rows, and the factors for passage lengths."""

    pool: int = Field(20, ge=2, le=100, description="Maximum number of rescored rows; the deadline may allow fewer.")
    short: int = Field(50, ge=0, description="Characters below which a passage is too short.")
    short_factor: float = Field(0.9, gt=0, le=1, description="Factor for passages that are too short.")
    long: int = Field(2000, ge=1, description="Characters above which a passage is too long.")
    long_factor: float = Field(0.95, gt=0, le=1, description="Factor for passages that are too long.")


class CrossEncoder:
    """Replaces the score of the best rows by the relevance that a cross-encoder reads from the text.

    Passages shorter than 50 characters count × 0.9, longer than 2000 × 0.95. Rows are read from the top, as many as the
    query's deadline and the measured speed of the model allow; the rows that were not read follow in their order, with
    their score × the lowest relevance read. Without a model, or while it is failing, the scores are unchanged and the
    answer says so. Feature R1.
    """

    about = About(features=("R1",), needs=(Scale.UNIT,), gives=Scale.UNIT)
    Params = CrossEncoderParams

    def __init__(self, params: CrossEncoderParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """The scores with the relevance of the rows that were read."""
        p = self._params
        if not len(pool):
            return Rescored.by(pool.score, "before")
        chunks = pool.candidates.matched[: p.pool]
        texts = [passage.text for passage in store.passages.passages(chunks.tolist())]
        answer = store.relevance.score(query.reading, texts, query.deadline_ns)
        if isinstance(answer, Unavailable):
            return answer
        read = np.zeros(len(pool), np.bool_)
        read[: len(texts)] = ~np.isnan(answer)
        if not read.any():
            return Unavailable("the deadline left no time to read a passage")
        lengths = np.array([len(text) for text in texts])
        factors = np.where(lengths < p.short, p.short_factor, np.where(lengths > p.long, p.long_factor, 1.0))
        relevance, of_length = np.full(len(pool), np.nan), np.full(len(pool), np.nan)
        relevance[: len(texts)], of_length[: len(texts)] = np.clip(answer, 0.0, 1.0), factors
        return Rescored.by(
            pool.score,
            "relevance * length_factor",
            # Rows that were not read have NaN as relevance, so this second formula applies to them.
            "before * lowest_read",
            relevance=relevance,
            length_factor=of_length,
            lowest_read=np.nanmin(relevance * of_length),
        )

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The passages that are read together with the query."""
        return StepCostEstimate(read_pairs=min(self._params.pool, rows))
