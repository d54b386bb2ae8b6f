"""Constitutional memories first."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from memory.lifecycle.tables import any_of
from pipeline.contracts import About, Params
from pipeline.model import Pool, Query, Reranking, Rescored
from pipeline.ports import Store, Unavailable


class PinParams(Params):
    """What is pinned."""

    tiers: list[str] = Field(["constitutional"], description="Tiers that stand above all others.")


class Pin:
    """Lifts constitutional memories above all others, whatever the query.

    All pinned rows are raised by one amount, which puts the lowest of them 1 above the best other row; among
    themselves they keep their order. Where they lead by that much already, nothing changes. The lift is a score
    like any other and shows in the explanation. Bringing constitutional memories into the pool is the channel's
    work. Feature C6.
    """

    about = About(features=("C6",), widens=True)
    Params = PinParams

    def __init__(self, params: PinParams) -> None:
        self._tiers = tuple(params.tiers)

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The lifted scores."""
        pinned = any_of(store.attributes.label("tier", pool.ids), self._tiers)
        if pinned.all() or not pinned.any():
            return Rescored(pool.score)
        lift = max(0.0, pool.score[~pinned].max() - pool.score[pinned].min() + 1.0)
        return Rescored(np.where(pinned, pool.score + lift, pool.score))
