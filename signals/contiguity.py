"""Raises memories that were created at about the same time."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams

_DAY = 86_400


class ContiguityParams(SignalParams):
    """The time window, and its weight."""

    window: float = Field(3600.0, gt=0, le=_DAY, description="Maximum seconds between two contiguous memories.")
    weight: float = Field(
        0.15, ge=0, le=1, description="Score added for a simultaneous pair.", json_schema_extra={"tunable": [0.0, 0.3]}
    )
    cap: float | None = Field(0.15, gt=0, description="Maximum that all pairs of a memory add.")


class Contiguity:
    """Adds (1 - Δ/window) · 0.15 to both memories of every pair of rows created at most an hour apart.

    A memory may be in many pairs, as all notes of one import are; so its gain is capped, by default at one full pair.
    Passages of one memory are not a pair. Unit scale, in [0, cap]. Feature F14.
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
        # (memories, memories), seconds between each pair
        apart = np.abs(made[:, None] - made[None, :])
        near = np.where(apart <= p.window, 1.0 - apart / p.window, 0.0)  # NaN (unknown date) compares as False
        np.fill_diagonal(near, 0.0)
        return np.asarray(p.weight * near.sum(axis=1)[inverse])
