"""The named addends of a fused score. Used by the fusers; no step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from speckit_memory.pipeline.arithmetic import logistic, min_max, row_sums
from speckit_memory.pipeline.model.columns import Candidates, Fused
from speckit_memory.pipeline.ports import Column

Normalise = Literal["none", "min_max", "logistic"]


def search_names(candidates: Candidates) -> tuple[str, ...]:
    """A name for each search: the channel, with the number of the query variant when it is not the query itself."""
    pairs = zip(candidates.channels, candidates.variants, strict=True)
    return tuple(channel if variant == 0 else f"{channel}~{variant}" for channel, variant in pairs)


def summing_to(names: Sequence[str], parts: Column, label: str, target: Column) -> Fused:
    """These addends and one more, called `label`, that makes each row sum up to `target`."""
    return Fused((*names, label), np.column_stack([parts, target - row_sums(parts)]))


def normalised(names: Sequence[str], parts: Column, how: Normalise) -> Fused:
    """These addends; if their sums are to be mapped to [0, 1], one more called `normalise` that does it."""
    if how == "none":
        return Fused(tuple(names), parts)
    total = row_sums(parts)
    return summing_to(names, parts, "normalise", min_max(total) if how == "min_max" else logistic(total))
