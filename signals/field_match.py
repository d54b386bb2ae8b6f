"""Raises matches in titles, trigger phrases and sections above those in the text."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams
from speckit_memory.signals._matching import matched_share, named_section


class FieldMatchParams(SignalParams):
    """The weight of a full match in every field, and the multipliers of the fields."""

    weight: float = Field(
        0.15,
        ge=0,
        le=1,
        description="Score added if every field matches fully.",
        json_schema_extra={"tunable": [0.0, 0.4]},
    )
    title: float = Field(10.0, ge=0, le=100, description="Multiplier of a match in the title.")
    triggers: float = Field(30.0, ge=0, le=100, description="Multiplier of a match in the trigger phrases.")
    anchors: float = Field(20.0, ge=0, le=100, description="Multiplier of a match in the name of the section.")
    body: float = Field(1.0, ge=0, le=100, description="Multiplier of a match in the text.")


class FieldMatch:
    """Adds weight × the weighted mean, over the fields, of the share of the query that the field holds.

    The shares weight the query's words by idf; the field multipliers are title 10, triggers 30, anchors 20, body 1. A
    mean is bounded, so that a match in a heavy field does not dominate the score as a plain factor would. The anchor is
    that of the matched passage. Unit scale, in [0, weight]. Feature F15.
    """

    about = About(features=("F15",))
    Params = FieldMatchParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: FieldMatchParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from the fields that hold the query."""
        p, memories = self._params, pool.candidates.parents
        total = p.title + p.triggers + p.anchors + p.body
        if not query.terms or total == 0:
            return np.zeros(len(pool))
        held = p.title * matched_share(query.terms, memories, "title", store)
        held += p.triggers * matched_share(query.terms, memories, "triggers", store)
        held += p.body * matched_share(query.terms, memories, "body", store)
        if p.anchors:
            held += p.anchors * named_section(query, pool, store)
        return np.asarray(p.weight * held / total)
