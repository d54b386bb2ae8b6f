"""The forgetting curve of FSRS-4.5: the retrievability of a memory over time (features F6, F10, M2).

The curve is a power law; stability is the number of days until retrievability falls to 90 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.lifecycle.tables import LASTING, any_of, by_label
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.ports import Attributes, Column, Ids

# R(t) = (1 + FACTOR · t / S) ^ DECAY for t days after the last event and stability S. Published as FSRS-4.5; the
# first FSRS v4 had DECAY = -1 and FACTOR = 1/9.
DECAY = -0.5
FACTOR = 19 / 81
"""0.9 ** (1 / DECAY) - 1: makes R exactly 0.9 when the days that passed equal the stability."""

EVENTS = ("last_review", "last_accessed", "created_at")
"""The facts that date the last use of a memory."""

SECONDS_PER_DAY = 86_400.0

CONTEXT_STABILITY = {"decision": np.inf, "research": 2.0}
"""Factor on stability by context type; 1 for others (feature F10)."""

TIER_STABILITY = {
    Tier.CONSTITUTIONAL: np.inf,
    Tier.CRITICAL: np.inf,
    Tier.IMPORTANT: 1.5,
    Tier.NORMAL: 1.0,
    Tier.TEMPORARY: 0.5,
    Tier.DEPRECATED: 0.25,
}
"""Factor on stability by tier (feature F10)."""

TIER_ELAPSED = {
    Tier.CONSTITUTIONAL: 0.1,
    Tier.CRITICAL: 0.3,
    Tier.IMPORTANT: 0.5,
    Tier.NORMAL: 1.0,
    Tier.TEMPORARY: 2.0,
    Tier.DEPRECATED: 3.0,
}
"""Factor on elapsed time by tier: the older alternative to `TIER_STABILITY`, never combined with it."""


def retrievability(days: Column, stability: Column) -> Column:
    """(1 + 19/81 · days / stability)^-0.5, in (0, 1]: the probability that a memory is still recalled.

    `days` since the last event, not negative; `stability` in days, positive; infinite stability gives 1. NaN in
    either gives NaN.
    """
    # days, stability: (n,) float64; days / inf is 0, so R is 1
    return np.asarray((1.0 + FACTOR * days / stability) ** DECAY)


def tier_retrievability(days: Column, stability: Column, tiers: NDArray[np.object_]) -> Column:
    """The retrievability of each memory with regard to tiers: 1 for tiers that do not decay, in any case.

    NaN if a memory decays and its days or stability are unknown. Feature F7.
    """
    return np.where(any_of(tiers, LASTING), 1.0, retrievability(days, stability))


def days_since(now: float, *events: Column) -> Column:
    """Days from the latest known event to `now` (epoch seconds), never negative; NaN when none is known."""
    # `fmax` ignores NaN, the value of an unknown time.
    latest = np.fmax.reduce(events)
    return np.asarray(np.maximum(now - latest, 0.0) / SECONDS_PER_DAY)


def days_unused(facts: Attributes, ids: Ids, now: float) -> Column:
    """Days since each memory was last reviewed, used or created; NaN if none of these times is known.

    Together with a memory's stability, this determines its retrievability.
    """
    return days_since(now, *(facts.number(event, ids) for event in EVENTS))


def stability_multipliers(context_types: NDArray[np.object_], tiers: NDArray[np.object_]) -> Column:
    """Context multiplier × tier multiplier of each memory; infinite when either is (feature F10)."""
    context = by_label(context_types, CONTEXT_STABILITY, 1.0)
    return np.asarray(context * by_label(tiers, TIER_STABILITY, 1.0))


def elapsed_multipliers(tiers: NDArray[np.object_]) -> Column:
    """Factor on elapsed time for the tier of each memory."""
    return by_label(tiers, TIER_ELAPSED, 1.0)
