"""Ensures that every channel with good hits is represented among the first results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.pipeline.model.columns import NO_RANK, Mask, Pool, Query, Reranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params
from speckit_memory.stages.rerank._places import by_place


class ChannelFloorParams(Params):
    """The guarantee for each channel."""

    top: int = Field(10, ge=2, le=100, description="Number of first places in which every channel is represented.")
    min_score: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Minimum score of a channel's best row for its promotion.",
        json_schema_extra={"tunable": [0.0, 0.5]},
    )


class ChannelFloor:
    """Gives every contributing channel at least one row among the first 10, if its best row scores 0.2 or more.

    The best row of a channel that is not represented replaces the lowest row that no channel depends on. Promoted rows
    come at the end of the first places, in order of score. Order and scores agree, because every row gets the score of
    its new place: a promoted row that of the last places, a displaced row that of the places just below. Channels
    without hits get nothing, and there are never more promotions than places that can be spared. The minimum score is
    on the unit scale, so normalised scores are needed (feature P7). Feature R5.
    """

    about = About(features=("R5",), needs=(Scale.UNIT,), gives=Scale.UNIT)
    Params = ChannelFloorParams

    def __init__(self, params: ChannelFloorParams) -> None:
        self._params = params

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:  # noqa: ARG002
        """The scores after the promotions."""
        return by_place(pool.score, self._order(pool))

    def _order(self, pool: Pool) -> NDArray[np.intp]:
        """Row numbers from first to last."""
        if not len(pool):
            return np.empty(0, np.intp)
        found = _found_by(pool)
        window = list(range(min(self._params.top, len(pool))))
        promoted: list[int] = []
        # The pool is in total order, so the first row that a channel found is its best.
        best = np.argmax(found, axis=0)
        for channel in np.argsort(best, kind="stable"):
            row = int(best[channel])
            if found[[*window, *promoted], channel].any() or not found[row, channel]:
                continue
            # rows of the window without which each of their channels is still represented
            spare = [r for r in window if _seen_without(found, [*window, *promoted], r)]
            if pool.score[row] >= self._params.min_score and spare:
                window.remove(spare[-1])
                promoted.append(row)
        first = [*window, *sorted(promoted)]
        rest = np.setdiff1d(np.arange(len(pool)), first)
        return np.concatenate([np.array(first, np.intp), rest])


def _found_by(pool: Pool) -> Mask:
    """Which channel found which row, bool[n, channels]; searches of one channel are combined."""
    channels = tuple(dict.fromkeys(pool.candidates.channels))
    hit = pool.candidates.rank != NO_RANK
    columns = [hit[:, np.array(pool.candidates.channels) == channel].any(axis=1) for channel in channels]
    return np.stack(columns, axis=1) if columns else np.zeros((len(pool), 0), np.bool_)


def _seen_without(found: Mask, shown: list[int], row: int) -> bool:
    """Whether every channel that found the row also found another shown row."""
    others = np.any(found[[r for r in shown if r != row]], axis=0)
    return bool(np.all(others >= found[row]))
