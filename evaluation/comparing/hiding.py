"""How large a loss the queries of a gate leave possible (feature E8).

The mean difference of all queries like these is bounded from below by a bet, as in `sequential` and for the number of
queries at hand: with d in [-1, 1] and x = (1 + d) / 2 in [0, 1], whoever thinks that the mean of x is m at most is
offered stakes that each query multiplies by 1 + b (x / m - 1), 0 < b <= 1. A mixture of such bets is never likely to
grow twentyfold (Ville 1939; Waudby-Smith and Ramdas, JRSS B 2024). Losses that none of these queries shows count too,
which a bootstrap cannot draw: only queries that were asked make a bound small, about 3.7 / n where none of n loses.
"""

from __future__ import annotations

from math import ceil, log, sqrt
from statistics import NormalDist

import numpy as np

from speckit_memory.evaluation.comparing.gate_report import CONFIDENCE, Hidden
from speckit_memory.evaluation.significance import POWER
from speckit_memory.pipeline.ports import Column

_BETS = np.array([1.0, 0.95, 0.8, 0.55, 0.35, 0.2, 0.1, 0.05, 0.02])
_SHARES = np.array([0.5, *[0.0625] * 8])
"""Half is staked on everything: the best bet while nothing has lost everything, and gates mostly compare near twins."""
_BAR = -log(1 - CONFIDENCE)
_STEPS = 40


def hidden(metric: str, differences: Column, max_loss: float | None) -> Hidden:
    """What can hide behind the differences of one metric, new minus old, each in [-1, 1]."""
    needed = None if max_loss is None else _needed(differences, max_loss)
    return Hidden(metric, largest_loss(differences), needed)


def largest_loss(differences: Column) -> float:
    """The largest mean loss that is not ruled out, one-sided with 95 % confidence; 0 where a gain is shown, 1 for no
    queries."""
    least, most = 0.0, 1.0
    if _ruled_out(differences, least):
        return 0.0
    for _ in range(_STEPS):
        between = (least + most) / 2
        least, most = (least, between) if _ruled_out(differences, between) else (between, most)
    return most


def _ruled_out(differences: Column, loss: float) -> bool:
    return float(np.logaddexp.reduce(_growth(differences, loss).sum(axis=0) + np.log(_SHARES))) >= _BAR


def _needed(differences: Column, max_loss: float) -> int | None:
    """How many queries would rule out a loss of the margin with 80 % power, if the differences stay as they are: the
    fewest that any one bet takes, its growth taken as normal. None where no bet grows."""
    growth = _growth(differences, max_loss)
    found = []
    for grown, share in zip(growth.T, _SHARES.tolist(), strict=True):
        mean, bar = float(grown.mean()), _BAR - log(share)
        if mean > 0:
            spread = NormalDist().inv_cdf(POWER) * float(grown.std())
            found.append(((spread + sqrt(spread * spread + 4 * mean * bar)) / (2 * mean)) ** 2)
    return ceil(min(found)) if found else None


def _growth(differences: Column, loss: float) -> Column:
    """float64[n, bets]: the logarithm of what each bet against this loss multiplies its stake by."""
    middle = max((1 - loss) / 2, 1e-12)
    with np.errstate(divide="ignore"):  # whoever stakes everything loses it with the first query that does
        growth: Column = np.log1p(_BETS * ((1 + differences[:, None]) / 2 / middle - 1))
    return growth
