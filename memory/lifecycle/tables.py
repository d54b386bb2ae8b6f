"""Tables of numbers by tier, and vectorised look-ups in such tables."""

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
"""The weight of each tier, in [0, 1] (features F5, F16)."""

DECAYS = {
    Tier.CONSTITUTIONAL: False,
    Tier.CRITICAL: False,
    Tier.IMPORTANT: True,
    Tier.NORMAL: True,
    Tier.TEMPORARY: True,
    Tier.DEPRECATED: True,
}
"""Which tiers decay over time (feature F7). Important memories do, but more slowly (feature F10)."""

LASTING = tuple(tier for tier, decays in DECAYS.items() if not decays)
"""The tiers that do not decay."""

UNKNOWN_TIER = TIER_WEIGHTS[Tier.NORMAL]
"""The weight of a memory of unknown tier."""


def by_label(labels: NDArray[np.object_], table: Mapping[Any, float], default: float) -> Column:
    """The number of each label, (n,) float64; `default` for labels not in the table."""
    figures = np.full(len(labels), default, np.float64)
    for label, figure in table.items():
        figures[labels == label] = figure
    return figures


def any_of(labels: NDArray[np.object_], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which labels are in `wanted`, (n,) bool."""
    found = np.zeros(len(labels), np.bool_)
    for label in wanted:
        # a plain string: numpy asks the class of an enumeration's member for its protocols, in vain and at length
        found |= np.asarray(labels == str(label), np.bool_)
    return found
