"""Combines the rows of two pools in a given order: interleaving, and handovers with other hits (features P5, T1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Pool, StepScore
from speckit_memory.pipeline.model.scales import Scale

STEP = "interleave"
"""The name of the interleaving step in explanations."""
K = 60.0
"""The constant of rank fusion; it does not affect the order."""
_FORMULA = "1 / (k + place)"


def mix_pools(control: Pool, variant: Pool, order: Sequence[int]) -> Pool:
    """The rows of these memories in this order; rows in both pools are taken from the control.

    Neither pool holds two rows of one memory. Scores of two pipelines are not comparable, so the score is computed from
    the place in the draft alone: 1 / (K + place). The evidence columns are those of the channels of both.
    """
    ours, theirs = _rows(control), _rows(variant)
    own = np.array([ours.get(memory, -1) for memory in order], np.intp)
    other = np.array([theirs.get(memory, -1) for memory in order], np.intp)
    candidates = _candidates(control.candidates, variant.candidates, own, other)
    # own, other: (rows,), each memory's row in the two pools, -1 where a pool lacks it
    place = np.arange(1, len(order) + 1, dtype=np.float64)
    parts = np.column_stack([np.full(len(order), K), place])
    score = StepScore(STEP, "formula", Scale.RANK_TERM, ("k", "place"), parts, 1.0 / (K + place), (_FORMULA,))
    hits = np.where(own >= 0, _at(control.chunk_hits, own), _at(variant.chunk_hits, other)).astype(np.int32)
    return Pool(candidates, (score,), hits)


def _rows(pool: Pool) -> dict[int, int]:
    return {memory: row for row, memory in enumerate(pool.candidates.parents.tolist())}


def _candidates(a: Candidates, b: Candidates, own: np.ndarray, other: np.ndarray) -> Candidates:
    """The union of both, with the columns of the control first, then those that only the variant has."""
    names = list(zip(a.channels, a.variants, strict=True))
    further = [at for at, name in enumerate(zip(b.channels, b.variants, strict=True)) if name not in names]
    shared = {name: at for at, name in enumerate(zip(b.channels, b.variants, strict=True)) if name in names}
    # raw, rank: (rows, searches of the control + further searches of the variant)
    raw = np.full((len(own), len(names) + len(further)), np.nan)
    rank = np.full(raw.shape, NO_RANK, np.int32)
    mine, foreign = own >= 0, own < 0
    raw[mine, : len(names)], rank[mine, : len(names)] = a.raw[own[mine]], a.rank[own[mine]]
    for column, name in enumerate(names):
        if name in shared:
            raw[foreign, column] = b.raw[other[foreign], shared[name]]
            rank[foreign, column] = b.rank[other[foreign], shared[name]]
    known = other >= 0
    raw[known, len(names) :] = b.raw[other[known]][:, further]
    rank[known, len(names) :] = b.rank[other[known]][:, further]

    def either(name: str) -> np.ndarray:
        return np.where(mine, _at(getattr(a, name), own), _at(getattr(b, name), other))

    return Candidates(
        either("ids"),
        either("parents"),
        either("passages"),
        either("updated_at"),
        (*a.channels, *(b.channels[at] for at in further)),
        (*a.variants, *(b.variants[at] for at in further)),
        (*a.scales, *(b.scales[at] for at in further)),
        np.concatenate([a.rest, b.rest[further]]),
        raw,
        rank,
    )


def _at(column: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The values of these rows; an arbitrary value for -1."""
    return column[rows] if len(column) else np.zeros(len(rows), column.dtype)
