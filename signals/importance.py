"""Multiplies scores by a factor of the importance tier."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from speckit_memory.memory.lifecycle.tables import by_label
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class ImportanceParams(SignalParams):
    """One factor per tier; factors closer to 1 have less effect."""

    constitutional: float = Field(3.0, ge=0, le=10, description="Factor of constitutional memories.")
    critical: float = Field(2.0, ge=0, le=10, description="Factor of critical memories.")
    important: float = Field(1.5, ge=0, le=10, description="Factor of important memories.")
    normal: float = Field(1.0, ge=0, le=10, description="Factor of normal memories and unknown tiers.")
    temporary: float = Field(0.5, ge=0, le=10, description="Factor of temporary memories.")
    deprecated: float = Field(0.0, ge=0, le=10, description="Factor of deprecated memories.")


class Importance:
    """Multiplies the score by the search boost of the memory's importance tier.

    Feature F7. The default factors are 3 / 2 / 1.5 / 1 / 0.5 / 0. Needs scores that are not negative: a factor above 1
    would lower a negative one.
    """

    about = About(
        features=("F7",),
        needs=(Scale.UNIT, Scale.BOOST, Scale.RANK_TERM, Scale.BM25),
        before=("interference", "confidence"),  # these may lead to negative scores, which a factor would reverse
    )
    Params = ImportanceParams
    combine: ClassVar[Literal["add", "multiply"]] = "multiply"

    def __init__(self, params: ImportanceParams) -> None:
        self._factors = {tier.value: float(getattr(params, tier.value)) for tier in Tier}
        self._other = params.normal

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The factor of each row."""
        return by_label(store.attributes.label("tier", pool.ids), self._factors, self._other)
