"""The five states of a memory, from hot to archived (feature M3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.lifecycle.fsrs import days_unused, retrievability
from speckit_memory.memory.lifecycle.tables import LASTING, any_of
from speckit_memory.pipeline.ports import Attributes, Column, Ids


class State(StrEnum):
    """The states, hottest first."""

    HOT = "HOT"
    WARM = "WARM"
    COLD = "COLD"
    DORMANT = "DORMANT"
    ARCHIVED = "ARCHIVED"


STATES = tuple(State)
UNKNOWN = -1
"""The state of a memory without any known event."""
UNKNOWN_STATE = "UNKNOWN"
"""Its name in results."""
_NAMES = (*(state.value for state in STATES), UNKNOWN_STATE)
"""Names by index in `STATES`; the last one, at index -1, is that of the unknown state."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Retrievability above which a memory is in a state, and the days without use after which it is archived."""

    hot: float = 0.80
    warm: float = 0.25
    cold: float = 0.05
    dormant: float = 0.02
    idle_days: float = 90.0


def states(
    recalled: Column, idle_days: Column, tiers: NDArray[np.object_], thresholds: Thresholds
) -> NDArray[np.int64]:
    """The state of each memory as an index in `STATES`, shape (n,).

    Args:
        recalled: Retrievability in [0, 1]; NaN gives `UNKNOWN`.
        idle_days: Days without use.
        tiers: Constitutional and critical memories are always hot.
        thresholds: A memory above none of them, or unused for more than `idle_days`, is archived.
    """
    borders = (thresholds.hot, thresholds.warm, thresholds.cold, thresholds.dormant)
    # HOT is 0: a memory's index is the number of thresholds that its retrievability does not exceed.
    places = sum((recalled <= border).astype(np.int64) for border in borders)
    places = np.where(idle_days > thresholds.idle_days, STATES.index(State.ARCHIVED), places)
    places = np.where(np.isnan(recalled), UNKNOWN, places)
    return np.where(any_of(tiers, LASTING), STATES.index(State.HOT), places)


def states_of(facts: Attributes, ids: Ids, now: float, thresholds: Thresholds) -> NDArray[np.int64]:
    """The state of each of these memories, shape (n,).

    Args:
        facts: Source of times, stability and tiers.
        ids: The memories.
        now: The present time in epoch seconds.
        thresholds: The limits between states.

    Returns:
        Indexes in `STATES`, or `UNKNOWN`.
    """
    unused = days_unused(facts, ids, now)
    recalled = retrievability(unused, facts.number("stability", ids))
    return states(recalled, unused, facts.label("tier", ids), thresholds)


def name_of(place: int) -> str:
    """The name of a state in results and notes."""
    return _NAMES[place]
