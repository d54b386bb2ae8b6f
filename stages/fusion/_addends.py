"""Named addends of a fused score. Used by the fusers; not a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from speckit_memory.pipeline.arithmetic import logistic, min_max, row_sums
from speckit_memory.pipeline.model.columns import Candidates, Fused
from speckit_memory.pipeline.ports import Column

Normalise = Literal["none", "min_max", "logistic"]


def search_names(candidates: Candidates) -> tuple[str, ...]:
    """A name for each search: the channel, with the number of the query variant if it is not the query itself."""
    pairs = zip(candidates.channels, candidates.variants, strict=True)
    return tuple(channel if variant == 0 else f"{channel}~{variant}" for channel, variant in pairs)


def summing_to(names: Sequence[str], parts: Column, label: str, target: Column) -> Fused:
    """These addends and another one that makes each row sum up to `target`.

    Args:
        names: Names of the addends.
        parts: The addends, float64[rows, names].
        label: Name of the additional addend.
        target: The sums to reach, float64[rows].
    """
    return Fused((*names, label), np.column_stack([parts, target - row_sums(parts)]))


def normalise(names: Sequence[str], parts: Column, how: Normalise) -> Fused:
    """These addends; for normalised scores also an addend `normalise` that maps their sums to [0, 1]."""
    if how == "none":
        return Fused(tuple(names), parts)
    total = row_sums(parts)
    return summing_to(names, parts, "normalise", min_max(total) if how == "min_max" else logistic(total))
