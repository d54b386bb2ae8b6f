"""The sealed ranking that annotators see: final, no public constructor, backed by immutable bytes (feature P3)."""

from __future__ import annotations

from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import matched_passages
from speckit_memory.pipeline.model.columns import Ranks
from speckit_memory.pipeline.ports import Column, Ids

COLUMNS = ("ids", "scores", "parents", "passages", "chunk_hits", "raw", "rank", "channels")


@final
class Ranking:
    """Rows in total order that no holder can change.

    `ids`, `parents`, `passages` int64[n]; `scores` float64[n]; `chunk_hits` int32[n]; `raw` float64[n, c] and `rank`
    int32[n, c] per search; `channels` names of the searches. The arrays are backed by `bytes`, so that numpy refuses to
    make them writable again.
    """

    __slots__ = COLUMNS

    ids: Ids
    scores: Column
    parents: Ids
    passages: Ids
    chunk_hits: NDArray[np.int32]
    raw: Column
    rank: Ranks
    channels: tuple[str, ...]

    def __new__(cls) -> NoReturn:  # noqa: D102 - see the class docstring
        raise TypeError("Ranking has no public constructor; the runner seals one")

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("Ranking is final")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a sealed ranking cannot be changed: {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a sealed ranking cannot be changed: {name}")

    @property
    def matched(self) -> Ids:
        """int64[n]: the best matching passage, the row itself if no channel knows."""
        return matched_passages(self.ids, self.passages)

    def __len__(self) -> int:
        return len(self.ids)
