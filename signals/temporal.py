"""Raises memories by their retrievability: those used recently are likely to be needed again."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.fsrs import (
    days_unused,
    elapsed_multipliers,
    stability_multipliers,
    tier_retrievability,
)
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class TemporalParams(SignalParams):
    """The weight of retrievability, and the effect of tier and context type on forgetting."""

    weight: float = Field(
        0.25, ge=0, le=1, description="Score added at full retrievability.", json_schema_extra={"tunable": [0.0, 0.5]}
    )
    classification: Literal["none", "stability", "elapsed"] = Field(
        "none",
        description="Effect of tier and context type: none; on stability, by context × tier; or on the elapsed time, "
        "by tier. The last two are alternatives and cannot be combined.",
    )


class Temporal:
    """Adds weight × R, the FSRS retrievability of each memory.

    R = (1 + 19/81 · t/S)^-0.5 with t the days since the last review, access or creation, whichever is latest, and S the
    memory's stability in days; constitutional and critical memories do not decay, their R is 1. Unit scale, in [0,
    weight]; a memory without any known event gets nothing. The catalogue's setting is `classification: stability`.
    Features F6, F7 and F10.
    """

    about = About(features=("F6", "F7", "F10"), conflicts=("composite",))
    Params = TemporalParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: TemporalParams) -> None:
        self._weight = params.weight
        self._classification = params.classification

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """weight × R of each row."""
        facts, ids = store.attributes, pool.ids
        days, stability = days_unused(facts, ids, query.now), facts.number("stability", ids)
        tiers = facts.label("tier", ids)
        if self._classification == "stability":
            stability = stability * stability_multipliers(facts.label("context_type", ids), tiers)
        elif self._classification == "elapsed":
            days = days * elapsed_multipliers(tiers)
        return self._weight * np.nan_to_num(tier_retrievability(days, stability, tiers))
