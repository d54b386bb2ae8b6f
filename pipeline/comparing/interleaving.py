"""Team draft interleaving: mixes two rankings of one query, and attributes each row to a team (feature P5).

The pipelines take turns in rounds: a coin decides which begins, and each adds its best row that is not yet present. The
rows at the top that both rank equally belong to neither team. Radlinski, Kurup and Joachims (CIKM 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

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
