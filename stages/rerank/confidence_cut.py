"""Cuts the tail behind a cliff of the scores."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.pipeline.model.columns import Pool, Query, Reranking, Selected
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class ConfidenceCutParams(Params):
    """What counts as a cliff."""

    times_median: float = Field(
        2.0,
        ge=1,
        le=20,
        description="A gap is a cliff above this many median gaps.",
        json_schema_extra={"tunable": [1, 8]},
    )
    min_rows: int = Field(3, ge=1, le=100, description="How many rows always stay.")
    ignore_tiers: list[str] = Field(
        ["constitutional"], description="Tiers that are neither cut nor part of the reckoning: they surface anyway."
    )


class ConfidenceCut:
    """Cuts at the first gap between neighbouring scores that is more than twice the median gap.

    gap_i = score_i - score_{i+1}. The first cliff at or behind the third row ends the list; three rows always
    stay; a median gap of zero (equal scores) means no cut, as does a list of three rows. Scores are finite by
    construction, so that there is no NaN to remove. Feature R6.
    """

    about = About(features=("R6",))
    Params = ConfidenceCutParams

    def __init__(self, params: ConfidenceCutParams) -> None:
        self._params = params
        self._ignored_tiers = tuple(params.ignore_tiers)

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """Which rows stay."""
        keep = np.ones(len(pool), np.bool_)
        rows = np.flatnonzero(~any_of(store.attributes.label("tier", pool.ids), self._ignored_tiers))
        last = self._params.min_rows - 1
        gaps = -np.diff(pool.score[rows])
        if len(gaps) > last and (median := np.median(gaps)) > 0:
            cliffs = np.flatnonzero(gaps[last:] > self._params.times_median * median)
            if len(cliffs):
                keep[rows[last + cliffs[0] + 1 :]] = False
        return Selected(keep)
