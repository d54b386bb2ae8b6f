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
    """Hottest first."""

    HOT = "HOT"
    WARM = "WARM"
    COLD = "COLD"
    DORMANT = "DORMANT"
    ARCHIVED = "ARCHIVED"


STATES = tuple(State)
UNKNOWN = -1
"""The state of a memory of which no event is known."""
UNKNOWN_STATE = "UNKNOWN"
"""The same as rows say it."""
_NAMES = (*(state.value for state in STATES), UNKNOWN_STATE)
"""By place; that of an unknown state is the last."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Retrievability above which a memory is in a state, and the days without use that archive it."""

    hot: float = 0.80
    warm: float = 0.25
    cold: float = 0.05
    dormant: float = 0.02
    idle_days: float = 90.0


def states(
    recalled: Column, idle_days: Column, tiers: NDArray[np.object_], thresholds: Thresholds
) -> NDArray[np.int64]:
    """The state of each memory as a place in `STATES`, `UNKNOWN` where retrievability (`recalled`) is NaN.

    A memory is archived when it is above no threshold, or was not used for more than `thresholds.idle_days`.
    Constitutional and critical memories are always hot.
    """
    borders = (thresholds.hot, thresholds.warm, thresholds.cold, thresholds.dormant)
    places = sum((recalled <= border).astype(np.int64) for border in borders)
    places = np.where(idle_days > thresholds.idle_days, STATES.index(State.ARCHIVED), places)
    places = np.where(np.isnan(recalled), UNKNOWN, places)
    return np.where(any_of(tiers, LASTING), STATES.index(State.HOT), places)


def states_of(facts: Attributes, ids: Ids, now: float, thresholds: Thresholds) -> NDArray[np.int64]:
    """The state of each of these memories at a time (epoch seconds), as a place in `STATES` or `UNKNOWN`."""
    unused = days_unused(facts, ids, now)
    recalled = retrievability(unused, facts.number("stability", ids))
    return states(recalled, unused, facts.label("tier", ids), thresholds)


def name_of(place: int) -> str:
    """The name of a state, as rows and notes have it."""
    return _NAMES[place]
