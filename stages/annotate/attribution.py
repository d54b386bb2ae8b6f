"""Which channels found what."""

from __future__ import annotations

from itertools import compress

import numpy as np

from speckit_memory.pipeline.model.columns import NO_RANK, Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, NoParams


class Attribution:
    """Names the channels that found each row, and counts for each channel what it found and what only it found.

    A channel that searched several variants of the query counts once. Feature A5.
    """

    about = About(features=("A5",))
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:  # noqa: ARG002
        """`found_by` for each row; found and exclusive counts per channel."""
        channels = tuple(dict.fromkeys(ranking.channels))
        hit = ranking.rank != NO_RANK
        found = np.zeros((len(ranking), len(channels)), np.bool_)
        for column, channel in enumerate(ranking.channels):
            found[:, channels.index(channel)] |= hit[:, column]
        alone = found & (found.sum(axis=1, keepdims=True) == 1)
        counts = {
            channel: {"found": int(found[:, place].sum()), "alone": int(alone[:, place].sum())}
            for place, channel in enumerate(channels)
        }
        # Of all sets of channels few occur: what is said of them is said once.
        rows = list(map(tuple, found.tolist()))
        named = {row: {"found_by": list(compress(channels, row))} for row in set(rows)}
        by_id = dict(zip(ranking.ids.tolist(), map(named.__getitem__, rows), strict=True))
        return Notes(by_id=by_id, overall={"attribution": counts})
