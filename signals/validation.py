"""Multiplies scores by a factor of how well a document has been validated."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams

_NEUTRAL = 0.5


class ValidationParams(SignalParams):
    """The factor's base, its parts and its bounds."""

    base: float = Field(0.9, ge=0, le=2, description="Factor of a memory of quality 0 at the lowest level.")
    quality: float = Field(0.2, ge=0, le=1, description="Addition to the factor at full quality.")
    level: float = Field(0.02, ge=0, le=0.5, description="Addition per spec level above the first.")
    max_level: float = Field(0.06, ge=0, le=1, description="Maximum addition by spec levels.")
    min_factor: float = Field(0.8, ge=0, le=1, description="Lower bound of the factor.")
    max_factor: float = Field(1.2, ge=1, le=3, description="Upper bound of the factor.")


class Validation:
    """Multiplies the score by 0.9 + 0.2 · quality + 0.02 per spec level above the first, kept in [0.8, 1.2].

    Quality is the memory's confidence from validations; without validations it is 0.5, which gives a factor of 1. Needs
    scores that are not negative. Feature F18.
    """

    about = About(
        features=("F18",),
        needs=(Scale.UNIT, Scale.BOOST, Scale.RANK_TERM, Scale.BM25),
        before=("interference",),  # it may lead to negative scores, which a factor would reverse
        conflicts=("confidence",),
    )
    Params = ValidationParams
    combine: ClassVar[Literal["add", "multiply"]] = "multiply"

    def __init__(self, params: ValidationParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:  # noqa: ARG002
        """The factor of each row."""
        p, facts, ids = self._params, store.attributes, pool.ids
        validated = np.nan_to_num(facts.number("validation_count", ids)) > 0
        quality = np.where(validated, np.nan_to_num(facts.number("confidence", ids), nan=_NEUTRAL), _NEUTRAL)
        above_first = np.maximum(np.nan_to_num(facts.number("spec_level", ids), nan=1.0) - 1.0, 0.0)
        factor = p.base + p.quality * quality + np.minimum(p.level * above_first, p.max_level)
        return np.clip(factor, p.min_factor, p.max_factor)
