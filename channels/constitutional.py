"""Constitutional memories: part of every answer, independent of the query."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams


class ConstitutionalParams(ChannelParams):
    """Parameters of the constitutional channel."""

    limit: int = Field(20, ge=1, le=1000, description="Maximum number of constitutional memories.")


class Constitutional:
    """All memories of the constitutional tier, by id, each with the score 1.

    The query's words, folder, context type and concepts are ignored; only its tier filter applies. A rerank step moves
    these memories to the top. Feature C6.
    """

    about = About(features=("C6",), gives=Scale.UNIT, unconditional=True)
    Params = ConstitutionalParams

    def __init__(self, params: ConstitutionalParams) -> None:
        pass

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The first `limit` admitted constitutional memories."""
        ids = store.attributes.of_tier("constitutional")
        ids = ids[store.attributes.scope(query.wanted.of_the_tier, query.now).admits(ids)][:limit]
        return Hits(ids, np.ones(len(ids)), Scale.UNIT)
