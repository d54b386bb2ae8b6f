"""Raises memories that users found useful, and lowers those they did not."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.confidence import BIRTH
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class ConfidenceParams(SignalParams):
    """The weight of judgements."""

    weight: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Score added at confidence 1, and subtracted at 0.",
        json_schema_extra={"tunable": [0.0, 0.3]},
    )


class Confidence:
    """Adds weight × (confidence - 0.5) / 0.5: positive for memories found useful, negative for others.

    Confidence starts at 0.5, so that a memory without judgements keeps its score. Unit scale, in [-weight, weight].
    Feature F17.
    """

    about = About(features=("F17",), conflicts=("validation",))
    Params = ConfidenceParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: ConfidenceParams) -> None:
        self._weight = params.weight

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The gain or loss of each row by its confidence."""
        confidence = np.nan_to_num(store.attributes.number("confidence", pool.ids), nan=BIRTH)
        return np.asarray(self._weight * (confidence - BIRTH) / BIRTH)
