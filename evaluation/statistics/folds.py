"""Splits queries into folds, so that a choice made on some is judged on others (Stone 1974)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError, out_of_range

FOLDS = 5

Rows = NDArray[np.intp]


def folds(queries: int, count: int, rng: np.random.Generator) -> Rows:
    """The fold of each query, 0 to count - 1, at random; the folds differ in size by at most one."""
    return rng.permutation(np.arange(queries) % count)


def check_folds(count: int, queries: dict[str, int]) -> None:
    """Raises SpeckitError (E032) unless there are two folds or more and each dataset has a query for every fold."""
    if count < 2:
        raise SpeckitError.of([out_of_range("the number of folds", count, "2 and above")])
    for name, size in queries.items():
        if size < count:
            message = f"'{name}' has {size} judged {'query' if size == 1 else 'queries'}, too few for {count} folds"
            raise SpeckitError("E032", message, hint="Give fewer folds, or a dataset with more judged queries.")
