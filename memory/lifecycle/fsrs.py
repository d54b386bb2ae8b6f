"""Forgetting after FSRS v4: how retrievable a memory still is (features F6, F10, M2).

The curve is a power law whose unit of stability is "days until retrievability falls to 90 %".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.lifecycle.tables import LASTING, any_of, by_label
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.ports import Attributes, Column, Ids

DECAY = -0.5
FACTOR = 19 / 81
"""0.9 ** (1 / DECAY) - 1: makes R exactly 0.9 when as many days have passed as the stability counts."""

EVENTS = ("last_review", "last_accessed", "created_at")
"""The facts that say when a memory was last in mind."""

SECONDS_PER_DAY = 86_400.0

CONTEXT_STABILITY = {"decision": np.inf, "research": 2.0}
"""By how much a context type multiplies stability; others by 1 (feature F10)."""

TIER_STABILITY = {
    Tier.CONSTITUTIONAL: np.inf,
    Tier.CRITICAL: np.inf,
    Tier.IMPORTANT: 1.5,
    Tier.NORMAL: 1.0,
    Tier.TEMPORARY: 0.5,
    Tier.DEPRECATED: 0.25,
}
"""By how much a tier multiplies stability (feature F10)."""

TIER_ELAPSED = {
    Tier.CONSTITUTIONAL: 0.1,
    Tier.CRITICAL: 0.3,
    Tier.IMPORTANT: 0.5,
    Tier.NORMAL: 1.0,
    Tier.TEMPORARY: 2.0,
    Tier.DEPRECATED: 3.0,
}
"""By how much a tier multiplies elapsed time: the older of the two ways, never to be used with the other one."""


def retrievability(days: Column, stability: Column) -> Column:
    """(1 + 19/81 · days / stability)^-0.5, in (0, 1]: the probability that a memory is still recalled.

    `days` since the last event, not negative; `stability` in days, positive; infinite stability gives 1. NaN in
    either gives NaN.
    """
    return np.asarray((1.0 + FACTOR * days / stability) ** DECAY)


def recalled(days: Column, stability: Column, tiers: NDArray[np.object_]) -> Column:
    """The retrievability of each memory, as it is with tiers: 1 for those that do not decay, whatever is known of them.

    NaN where a memory decays and the days or the stability are not known. Feature F7.
    """
    return np.where(any_of(tiers, LASTING), 1.0, retrievability(days, stability))


def days_since(now: float, *events: Column) -> Column:
    """Days from the latest known of these events to `now` (epoch seconds), never negative; NaN when none is known."""
    latest = np.fmax.reduce(events)
    return np.asarray(np.maximum(now - latest, 0.0) / SECONDS_PER_DAY)


def days_unused(facts: Attributes, ids: Ids, now: float) -> Column:
    """Days since each memory was last reviewed, used or made, whichever came last; NaN where nothing of it is known.

    With the stability of a memory this is all that its retrievability hangs on.
    """
    return days_since(now, *(facts.number(event, ids) for event in EVENTS))


def stability_multipliers(context_types: NDArray[np.object_], tiers: NDArray[np.object_]) -> Column:
    """Context multiplier × tier multiplier of each memory; infinite when either is (feature F10)."""
    context = by_label(context_types, CONTEXT_STABILITY, 1.0)
    return np.asarray(context * by_label(tiers, TIER_STABILITY, 1.0))


def elapsed_multipliers(tiers: NDArray[np.object_]) -> Column:
    """By how much the time that passed counts more or less for each tier."""
    return by_label(tiers, TIER_ELAPSED, 1.0)
