"""Cuts off the tail after a large gap between scores."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Selected
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class ConfidenceCutParams(Params):
    """The definition of a large gap."""

    times_median: float = Field(
        2.0,
        ge=1,
        le=20,
        description="A gap is large above this multiple of the median gap.",
        json_schema_extra={"tunable": [1, 8]},
    )
    min_rows: int = Field(3, ge=1, le=100, description="Number of rows that always remain.")
    ignore_tiers: list[str] = Field(
        ["constitutional"], description="Tiers that are neither cut nor counted, since they are in every answer."
    )


class ConfidenceCut:
    """Cuts at the first gap between neighbouring scores that is more than twice the median gap.

    gap_i = score_i - score_{i+1}. The first large gap after at least three rows ends the list; the first three rows
    always remain. With a median gap of zero (equal scores) or at most three rows there is no cut. Scores are finite by
    construction, so there is no NaN to handle. Feature R6.
    """

    about = About(features=("R6",))
    Params = ConfidenceCutParams

    def __init__(self, params: ConfidenceCutParams) -> None:
        self._params = params
        self._ignored_tiers = tuple(params.ignore_tiers)

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The mask of the rows that remain."""
        keep = np.ones(len(pool), np.bool_)
        rows = np.flatnonzero(~any_of(store.attributes.label("tier", pool.ids), self._ignored_tiers))
        last = self._params.min_rows - 1
        gaps = -np.diff(pool.score[rows])
        if len(gaps) > last and (median := np.median(gaps)) > 0:
            # gaps[i] is between rows i and i + 1: the first min_rows rows stay above any cut.
            cliffs = np.flatnonzero(gaps[last:] > self._params.times_median * median)
            if len(cliffs):
                keep[rows[last + cliffs[0] + 1 :]] = False
        return Selected(keep)
