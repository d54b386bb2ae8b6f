"""Retrievability as evidence: what was used lately is wanted again."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.fsrs import days_unused, elapsed_multipliers, recalled, stability_multipliers
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class TemporalParams(SignalParams):
    """How much retrievability counts, and what slows forgetting."""

    weight: float = Field(
        0.25, ge=0, le=1, description="Score added at full retrievability.", json_schema_extra={"tunable": [0.0, 0.5]}
    )
    classification: Literal["none", "stability", "elapsed"] = Field(
        "none",
        description="What tier and context type change: nothing; stability, by context × tier; or the time that "
        "passed, by tier. The last two are two answers to one question and cannot be combined.",
    )


class Temporal:
    """Adds weight × R, the FSRS retrievability of each memory.

    R = (1 + 19/81 · t/S)^-0.5 with t the days since the last review, access or creation, whichever came last,
    and S the memory's stability in days; constitutional and critical memories do not decay, their R is 1. Unit
    scale, in [0, weight]; a memory without any known event gets nothing.
    `classification: stability` is what the catalogue asks for. Features F6, F7 and F10.
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
        return self._weight * np.nan_to_num(recalled(days, stability, tiers))
