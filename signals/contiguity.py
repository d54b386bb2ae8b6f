"""Memories made at about the same time support each other."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams

_DAY = 86_400


class ContiguityParams(SignalParams):
    """How near in time, and how much it counts."""

    window: float = Field(3600.0, gt=0, le=_DAY, description="Seconds within which two memories are contiguous.")
    weight: float = Field(
        0.15, ge=0, le=1, description="Score added for a pair made at once.", json_schema_extra={"tunable": [0.0, 0.3]}
    )
    cap: float | None = Field(0.15, gt=0, description="The most that all pairs of a memory add.")


class Contiguity:
    """Adds (1 - Δ/window) · 0.15 to both memories of every found pair made at most an hour apart.

    A memory may stand in many pairs (notes imported at once all do): what it gains is capped, at one full pair
    unless set otherwise. Passages of one memory are no pair. Unit scale, in [0, cap]. Feature F14.
    """

    about = About(features=("F14",))
    Params = ContiguityParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: ContiguityParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The sum over the pairs of each row's memory."""
        p = self._params
        memories, inverse = np.unique(pool.candidates.parents, return_inverse=True)
        made = store.attributes.number("created_at", memories)
        apart = np.abs(made[:, None] - made[None, :])
        near = np.where(apart <= p.window, 1.0 - apart / p.window, 0.0)  # NaN, an unknown date, is near to nothing
        np.fill_diagonal(near, 0.0)
        return np.asarray(p.weight * near.sum(axis=1)[inverse])
