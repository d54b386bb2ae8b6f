"""Scores for an order chosen by a step: arithmetic that several rerankers share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.model.columns import Rescored
from speckit_memory.pipeline.ports import Column

_STEP = 1e-12


def by_place(scores: Column, order: NDArray[np.intp]) -> Rescored:
    """Scores that put the rows into this order: each row gets the score of its new place.

    `scores` are in total order, `order` lists row numbers from first to last. Equal scores are separated by 1e-12 per
    place, because ties would be ordered by id. Rows before the first changed place keep their score to the last bit.
    """
    places = np.arange(len(order))
    # order[i] is the row that takes place i.
    changed = np.flatnonzero(order != places)
    if not len(changed):
        return Rescored.by(scores, "before")
    of_place, apart = np.empty(len(order)), np.empty(len(order))
    of_place[order] = scores
    apart[order] = np.maximum(places - changed[0], 0) * _STEP
    return Rescored.by(scores, "score_of_place - apart", score_of_place=of_place, apart=apart)
