"""Looking figures up by label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from config.exchange import Column


def by_label(labels: NDArray[np.object_], table: Mapping[Any, float], default: float) -> Column:
    """The figure of each label, float64[n]; `default` for labels that the table does not know."""
    figures = np.full(len(labels), default, np.float64)
    for label, figure in table.items():
        figures[labels == label] = figure
    return figures


def any_of(labels: NDArray[np.object_], wanted: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which labels are among the wanted ones, bool[n]."""
    found = np.zeros(len(labels), np.bool_)
    for label in wanted:
        found |= np.asarray(labels == label, np.bool_)
    return found
