"""Raises memories that were changed recently."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.fsrs import days_since
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class RecencyParams(SignalParams):
    """The weight of recency and how fast it fades."""

    weight: float = Field(
        0.1, ge=0, le=1, description="Score added to a memory changed now.", json_schema_extra={"tunable": [0.0, 0.3]}
    )
    fade_days: float = Field(365.0, gt=0, description="Days in which the bonus falls to 1/e.")


class Recency:
    """Adds weight · e^(-days/365), with the days since the memory was last changed.

    Unlike `temporal` it ignores usage and stability. Unit scale, in [0, weight]; nothing if the time of change is
    unknown. The constants are those of the recency part of adaptive fusion (feature F3), which weights it by intent.
    """

    about = About(features=("F3",))
    Params = RecencyParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: RecencyParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The bonus of each row."""
        days = days_since(query.now, pool.candidates.updated_at)
        return self._params.weight * np.nan_to_num(np.exp(-days / self._params.fade_days))
