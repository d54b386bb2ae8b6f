"""Team draft interleaving: mixes two rankings of one query, and attributes each row to a team (features P5, T1).

The pipelines take turns in rounds: a coin decides which begins, and each adds its best row that is not yet present. The
rows at the top that both rank equally belong to neither team. Radlinski, Kurup and Joachims (CIKM 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np

from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Pool, StepScore
from speckit_memory.pipeline.model.scales import Scale

Team = Literal["control", "variant", "both"]
"""The pipeline that contributed a row; "both" for rows that count for neither."""


@dataclass(frozen=True, slots=True)
class InterleavedRanking:
    """The mixed ranking, best first, and the team of each row."""

    ids: tuple[int, ...]
    teams: tuple[Team, ...]


def draft_ranking(control: Sequence[int], variant: Sequence[int], seed: str, *, kept: int = 0) -> InterleavedRanking:
    """Both rankings in one: every row of either, once. Deterministic for the same rankings and seed.

    If only one ranking has rows left, these follow in its order and count for neither team, since the other had nothing
    to compete with: a longer answer is not a better one.

    Args:
        control: Row ids of the control, best first, without repetitions.
        variant: Row ids of the variant, best first, without repetitions.
        seed: Seed of the coin.
        kept: Number of first rows of the control that keep their place and count for neither team.
    """
    taken = dict.fromkeys(control[:kept])
    lists: dict[Team, list[int]] = {
        "control": [one for one in control if one not in taken],
        "variant": [one for one in variant if one not in taken],
    }
    # The common prefix of both rankings counts for neither team.
    for ours, theirs in zip(lists["control"], lists["variant"], strict=False):
        if ours != theirs:
            break
        taken[ours] = None
    teams: list[Team] = ["both"] * len(taken)
    for round_ in range(len(control) + len(variant)):
        best = {team: next((one for one in ranking if one not in taken), None) for team, ranking in lists.items()}
        if None in best.values():
            break
        order: tuple[Team, Team] = ("control", "variant") if heads(seed, round_) else ("variant", "control")
        for team in order:
            own = next((one for one in lists[team] if one not in taken), None)
            if own is not None:
                taken[own] = None
                teams.append(team)
    left = [one for ranking in lists.values() for one in ranking if one not in taken]
    rest: list[Team] = ["both"] * len(dict.fromkeys(left))
    return InterleavedRanking((*taken, *dict.fromkeys(left)), (*teams, *rest))


def heads(seed: str, round_: int) -> bool:
    """A fair coin toss, deterministic per seed and round."""
    return sha256(f"{seed}:{round_}".encode()).digest()[0] % 2 == 0


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
