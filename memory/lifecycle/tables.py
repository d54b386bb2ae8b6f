"""Figures by label: the weight of each tier, and looking such figures up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.ports import Column

TIER_WEIGHTS = {
    Tier.CONSTITUTIONAL: 1.0,
    Tier.CRITICAL: 1.0,
    Tier.IMPORTANT: 0.8,
    Tier.NORMAL: 0.5,
    Tier.TEMPORARY: 0.3,
    Tier.DEPRECATED: 0.1,
}
"""How much a memory of each tier weighs, in [0, 1] (features F5, F16)."""

DECAYS = {
    Tier.CONSTITUTIONAL: False,
    Tier.CRITICAL: False,
    Tier.IMPORTANT: True,
    Tier.NORMAL: True,
    Tier.TEMPORARY: True,
    Tier.DEPRECATED: True,
}
"""Which tiers are forgotten with time (feature F7). Important memories are, only more slowly (feature F10)."""

LASTING = tuple(tier for tier, decays in DECAYS.items() if not decays)
"""The tiers that time does nothing to."""

UNKNOWN_TIER = TIER_WEIGHTS[Tier.NORMAL]
"""The weight of a memory whose tier is not known."""


def by_label(labels: NDArray[np.object_], table: Mapping[Any, float], default: float) -> Column:
    """The figure of each label, float64[n]; `default` for labels that the table does not know."""
    figures = np.full(len(labels), default, np.float64)
    for label, figure in table.items():
        figures[labels == label] = figure
    return figures


def any_of(labels: NDArray[np.object_], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which labels are among the wanted ones, bool[n]."""
    found = np.zeros(len(labels), np.bool_)
    for label in wanted:
        found |= np.asarray(labels == label, np.bool_)
    return found
