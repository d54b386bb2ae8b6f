"""Raises memories of active, important folders."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.memory.lifecycle.folder_worth import FolderWeights, folder_worth
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class FolderScoreParams(SignalParams):
    """The parts of a folder's score, and its weight."""

    weight: float = Field(
        0.1, ge=0, le=1, description="Score added in the best folder.", json_schema_extra={"tunable": [0.0, 0.3]}
    )
    form: Literal["composite", "damped_sum"] = Field(
        "composite",
        description="composite: by all memories of the folder; damped_sum: by the query's hits in it.",
    )
    recency: float = Field(0.40, ge=0, le=1, description="Weight of the most recently changed memory.")
    importance: float = Field(0.30, ge=0, le=1, description="Weight of the mean tier.")
    activity: float = Field(0.20, ge=0, le=1, description="Weight of the number of memories.")
    validation: float = Field(0.10, ge=0, le=1, description="Weight of the mean confidence.")
    fade: float = Field(0.10, ge=0, le=10, description="Recency is 1 / (1 + fade · days).")
    full_at: int = Field(5, ge=1, le=1000, description="Number of memories at which a folder is fully active.")


class FolderScore:
    """Adds weight × the score of the row's folder.

    `composite`: (0.40 recency + 0.30 importance + 0.20 activity + 0.10 validation) × archive multiplier, in [0, 1].
    Recency is 1 / (1 + 0.10 · days) of the most recently changed memory, importance the mean over the tiers, activity
    full at 5 memories, validation the mean confidence; all memories of the folder count, not only hits. Archives have
    the multiplier 0.1, scratch, test and prototype folders 0.2.

    `damped_sum`: Σ scores of the folder's hits / √(M + 1), M the number of them, relative to the best folder.

    Unit scale, in [0, weight]; a memory outside all folders gets nothing. Feature F16.
    """

    about = About(features=("F16",))
    Params = FolderScoreParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: FolderScoreParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from its folder."""
        labels = store.attributes.label("folder", pool.ids)
        folders, inverse = np.unique(labels.astype(np.str_), return_inverse=True)
        if self._params.form == "composite":
            scores = np.array([self._composite(str(folder), query.now, store) for folder in folders], np.float64)
        else:
            scores = _damped_sums(inverse, pool)
        scores[folders == ""] = 0.0
        return self._params.weight * scores[inverse]

    def _composite(self, folder: str, now: float, store: Store) -> float:
        p, members = self._params, store.attributes.in_folder(folder)
        weights = FolderWeights(p.recency, p.importance, p.activity, p.validation, p.fade, p.full_at)
        return folder_worth(folder, members, store.attributes, now, weights).score


def _damped_sums(folder: NDArray[np.intp], pool: Pool) -> Column:
    """Σ best score per memory / √(M + 1) of each folder, divided by the largest; float64[folders]."""
    parents = pool.candidates.parents
    # best, home: (memories,), the best score and the folder of each memory
    memories, of_memory = np.unique(parents, return_inverse=True)
    best = np.zeros(len(memories))
    np.maximum.at(best, of_memory, pool.score)
    home = np.zeros(len(memories), np.int64)
    home[of_memory] = folder
    sums = np.bincount(home, weights=best, minlength=int(folder.max(initial=-1)) + 1)
    damped = sums / np.sqrt(np.bincount(home, minlength=len(sums)) + 1.0)
    largest = damped.max(initial=0.0)
    return np.asarray(damped / largest) if largest > 0 else damped
