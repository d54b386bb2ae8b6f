"""Notes the retention state of each memory, and hides states that are too cold."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle.states import STATES, UNKNOWN, State, Thresholds, name_of, states_of
from speckit_memory.memory.lifecycle.tables import any_of
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext

StateName = Literal["HOT", "WARM", "COLD", "DORMANT", "ARCHIVED"]


class StateFilterParams(Params):
    """The states that are shown, and the limit of each."""

    min_state: StateName = Field("ARCHIVED", description="The coldest state that is shown.")
    limits: dict[StateName, Annotated[int, Field(ge=0)]] = Field(
        {}, description="Maximum number of rows of each state; a state without an entry has no limit."
    )
    hot: float = Field(0.80, gt=0, le=1, description="Retrievability above which a memory is HOT.")
    warm: float = Field(0.25, gt=0, le=1, description="Retrievability above which a memory is WARM.")
    cold: float = Field(0.05, gt=0, le=1, description="Retrievability above which a memory is COLD.")
    dormant: float = Field(0.02, gt=0, le=1, description="Retrievability above which a memory is DORMANT.")
    idle_days: float = Field(90.0, gt=0, description="Days without use after which a memory is ARCHIVED.")


class StateFilter:
    """Notes the state of every row and hides states that are too cold or above their limit.

    The state comes from FSRS retrievability (HOT > 0.80, WARM > 0.25, COLD > 0.05, DORMANT > 0.02, else ARCHIVED, as is
    any memory not used for 90 days); constitutional and critical memories are HOT. By default nothing is hidden, and a
    memory whose state is unknown is never hidden. The catalogue's limits are HOT 5, WARM 10, COLD 3, DORMANT 2,
    ARCHIVED 1; they count from the top and exclude constitutional memories. Features A1 and M3.
    """

    about = About(features=("A1", "M3"))
    Params = StateFilterParams

    def __init__(self, params: StateFilterParams) -> None:
        self._coldest = STATES.index(State(params.min_state))
        self._limits = {STATES.index(State(state)): limit for state, limit in params.limits.items()}
        self._thresholds = Thresholds(params.hot, params.warm, params.cold, params.dormant, params.idle_days)

    @classmethod
    def check(cls, params: StateFilterParams, context: PipelineContext) -> Iterable[tuple[tuple[str, ...], str]]:  # noqa: ARG003
        """The thresholds must fall from HOT to DORMANT."""
        names = ("hot", "warm", "cold", "dormant")
        for higher, lower in pairwise(names):
            if getattr(params, lower) >= getattr(params, higher):
                yield (lower,), f"'{lower}' must be below '{higher}' ({getattr(params, higher)})"

    def states(self, memories: Ids, now: float, store: Store) -> list[str]:
        """The name of each memory's state by these thresholds."""
        return [name_of(place) for place in states_of(store.attributes, memories, now, self._thresholds).tolist()]

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The state by id, and a mask of the rows that remain."""
        facts, ids = store.attributes, ranking.ids
        places = states_of(facts, ids, query.now, self._thresholds)
        keep = places <= self._coldest
        if self._limits:  # constitutional memories are always HOT: they would use up that limit
            always = any_of(facts.label("tier", ids), (Tier.CONSTITUTIONAL,))
        for state, limit in self._limits.items():
            of_state = keep & (places == state) & ~always
            # The running count keeps the first `limit` rows of the state.
            keep &= ~of_state | (np.cumsum(of_state) <= limit)
        told = {place: {"state": name_of(place)} for place in range(UNKNOWN, len(STATES))}
        notes = dict(zip(ids.tolist(), map(told.__getitem__, places.tolist()), strict=True))
        return Notes(by_id=notes, overall={"hidden_by_state": len(keep) - int(np.count_nonzero(keep))}, keep=keep)
