"""Raises memories that were written for the purpose of the query."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams
from speckit_memory.signals._matching import SUITS


class EncodingIntentParams(SignalParams):
    """The weight of a matching purpose."""

    weight: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Score added for a matching purpose at full confidence in the intent.",
        json_schema_extra={"tunable": [0.0, 0.3]},
    )


class EncodingIntent:
    """Adds weight × confidence in the intent to memories whose context type suits the query's intent.

    Encoding specificity (Tulving and Thomson 1973): knowledge is recalled best for the purpose it was learnt for. Unit
    scale, in [0, weight]; nothing for the intent to understand. Feature F18.
    """

    about = About(features=("F18",))
    Params = EncodingIntentParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: EncodingIntentParams) -> None:
        self._weight = params.weight

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from its purpose."""
        purpose = SUITS.get(query.plan.intent)
        if purpose is None:
            return np.zeros(len(pool))
        suits = store.attributes.label("context_type", pool.ids) == purpose
        return np.asarray(self._weight * query.plan.intent_confidence * suits.astype(np.float64))
