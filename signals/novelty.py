"""Raises memories that were created recently."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams

_SECONDS_PER_HOUR = 3600.0


class NoveltyParams(SignalParams):
    """The size of the boost and how fast it fades."""

    weight: float = Field(
        0.15,
        ge=0,
        le=1,
        description="Score added at the moment of creation.",
        json_schema_extra={"tunable": [0.0, 0.3]},
    )
    fade_hours: float = Field(12.0, gt=0, le=240, description="Hours in which the boost falls to 1/e.")
    until_hours: float = Field(48.0, gt=0, le=960, description="Age in hours above which nothing is added.")
    ceiling: float | None = Field(0.95, gt=0, description="Highest score to which this signal raises a row.")


class Novelty:
    """Adds 0.15 · e^(-hours/12) to memories of at most 48 hours, up to a combined score of 0.95.

    Unit scale, in [0, weight]. A memory dated in the future counts as new. The boost applies to the passages' own
    scores, so it comes before their aggregation (feature P7). Feature F8.
    """

    about = About(features=("F8",), before=("collapse", "composite"))
    Params = NoveltyParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: NoveltyParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The boost of each row."""
        p = self._params
        age = query.now - store.attributes.number("created_at", pool.ids)
        # a memory of unknown date is infinitely old
        hours = np.maximum(np.nan_to_num(age, nan=np.inf), 0.0) / _SECONDS_PER_HOUR
        return np.where(hours <= p.until_hours, p.weight * np.exp(-hours / p.fade_hours), 0.0)
