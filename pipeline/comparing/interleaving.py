"""Team draft: two rankings of one query mixed into one, in which each row is of a team (feature P5).

Both pipelines take turns in rounds: a coin decides who begins, and each adds its best row that is not there yet. What
both rank alike from the top on is of neither team. Radlinski, Kurup and Joachims (CIKM 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

Team = Literal["control", "variant", "both"]
"""Whose row it is; of "both" are those that neither can earn anything by."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The mixed ranking, best first, and the team of each row."""

    ids: tuple[int, ...]
    teams: tuple[Team, ...]


def drafted(control: Sequence[int], variant: Sequence[int], seed: str, *, kept: int = 0) -> Draft:
    """Both rankings in one: every row of either, once. The same for the same rankings and seed, wherever it is done.

    Neither ranking holds a row twice. The first `kept` rows of the control stay where they are and are of neither team.
    When only one has rows left, these follow in its order and are of neither team, as the other had nothing to set
    against them: a longer answer is no better one.
    """
    taken = dict.fromkeys(control[:kept])
    lists: dict[Team, list[int]] = {
        "control": [one for one in control if one not in taken],
        "variant": [one for one in variant if one not in taken],
    }
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
    return Draft((*taken, *dict.fromkeys(left)), (*teams, *rest))


def heads(seed: str, round_: int) -> bool:
    """A fair coin, tossed once for each round of each seed."""
    return sha256(f"{seed}:{round_}".encode()).digest()[0] % 2 == 0
