"""Scores for an order that a step has chosen: arithmetic that several rerankers share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column

_STEP = 1e-12


def by_place(scores: Column, order: NDArray[np.intp]) -> Column:
    """A score for each row such that the rows stand in this order: each gets the score of the place it takes.

    `scores` are in total order, `order` names row numbers from first to last. Equal scores are told apart by
    1e-12 per place, because a tie would be put in the order of ids. Rows ahead of the first changed place keep
    their score to the last bit.
    """
    places = np.arange(len(order))
    changed = np.flatnonzero(order != places)
    placed = scores.copy()
    if len(changed):
        apart = np.maximum(places - changed[0], 0) * _STEP
        placed[order] = scores - apart
    return placed
