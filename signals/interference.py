"""Lowers memories that have near duplicates in their folder."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class InterferenceParams(SignalParams):
    """The penalty for one near duplicate."""

    penalty: float = Field(
        0.08, ge=0, le=1, description="Penalty per near duplicate.", json_schema_extra={"tunable": [0.0, 0.15]}
    )


class Interference:
    """Subtracts 0.08 for every memory of the same folder whose title and trigger phrases are nearly the same.

    The number of such memories (Jaccard similarity above 0.75) is computed during indexing and stored with the memory.
    Unit scale, at most 0. Feature F9.
    """

    about = About(features=("F9",))
    Params = InterferenceParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: InterferenceParams) -> None:
        self._penalty = params.penalty

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The penalty of each row."""
        return -self._penalty * np.nan_to_num(store.attributes.number("interference", pool.ids))
