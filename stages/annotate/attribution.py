"""Reports which channels found each row."""

from __future__ import annotations

from itertools import compress

import numpy as np

from speckit_memory.pipeline.model.columns import NO_RANK, Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, NoParams


class Attribution:
    """Names the channels that found each row, and counts the rows that each channel found, and those it alone found.

    A channel that searched several variants of the query counts once. Feature A5.
    """

    about = About(features=("A5",))
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:  # noqa: ARG002
        """`found_by` for each row; total and exclusive counts per channel."""
        channels = tuple(dict.fromkeys(ranking.channels))
        hit = ranking.rank != NO_RANK
        found = np.zeros((len(ranking), len(channels)), np.bool_)
        for column, channel in enumerate(ranking.channels):
            found[:, channels.index(channel)] |= hit[:, column]
        alone = found & (found.sum(axis=1, keepdims=True) == 1)
        totals = zip(channels, found.sum(axis=0).tolist(), alone.sum(axis=0).tolist(), strict=True)
        counts = {channel: {"found": every, "alone": own} for channel, every, own in totals}
        # Few combinations of channels occur, so rows share one note object per combination.
        rows = list(map(tuple, found.tolist()))
        named = {row: {"found_by": list(compress(channels, row))} for row in set(rows)}
        by_id = dict(zip(ranking.ids.tolist(), map(named.__getitem__, rows), strict=True))
        return Notes(by_id=by_id, overall={"attribution": counts})
