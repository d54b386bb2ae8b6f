"""The coordinate search behind `pipeline tune`: one parameter at a time, a few values each, in a shrinking window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from speckit_memory.evaluation.running.trials import START, Trials
from speckit_memory.evaluation.running.tunable import Parameter, Setting
from speckit_memory.evaluation.statistics.comparison import ALPHA, Values
from speckit_memory.evaluation.statistics.folds import Rows
from speckit_memory.evaluation.statistics.sequential import anytime_p
from speckit_memory.pipeline.ports import Column

OBJECTIVE = "nDCG@10"

WINDOWS = (1.0, 0.5, 0.25)
"""The share of its range in which a parameter is searched, by pass."""

Seen = Mapping[int, Rows]
"""The queries that a search may use, by the index of their dataset."""


@dataclass(frozen=True, slots=True)
class TuningResult:
    """The result of a search. `idle` names the parameters whose values made no difference to any query."""

    setting: Setting
    idle: frozenset[str]

    def value(self, parameter: Parameter) -> float:
        """The value of a parameter after the search."""
        return self.setting.get(parameter.name, parameter.start)


def search(
    table: Trials, space: Sequence[Parameter], seen: Seen, *, budget: int, seed: int, tried: Callable[[], None]
) -> TuningResult:
    """Coordinate search for the setting with the best nDCG@10, averaged per dataset and then over the datasets.

    In each pass every parameter is visited once, in a seeded random order. A new value is accepted when its gain over
    the present one exceeds the standard error of the gain, so that values do not follow noise (Breiman et al. 1984),
    and when it makes no dataset significantly worse than at the start. A value that loses more than its standard error
    on a part of the queries is not tried on the others (racing; Maron and Moore 1994). A parameter is idle when in the
    first pass the value farthest from its present one changes nothing. At the end every changed value is reset unless
    that loses more than its standard error. Values are drawn by seed, pass, parameter and present value alone, so that
    searches over nearly the same queries try nearly the same settings.

    Args:
        table: Measures settings.
        space: The parameters to search.
        seen: The queries that may be used.
        budget: Maximum number of settings to try.
        seed: Seeds the order of parameters and the values.
        tried: Called for each setting.
    """
    setting = START
    idle: set[str] = set()
    left = budget
    for number, window in enumerate(WINDOWS):
        # seeded by the pass, not by the queries: all searches visit the parameters in the same order
        for place in np.random.default_rng([seed, number]).permutation(len(space)).tolist():
            parameter = space[place]
            if parameter.name in idle:
                continue
            present = setting.get(parameter.name, parameter.start)
            proposed = parameter.proposals(present, window, np.random.default_rng([seed, number, place]))
            gains: list[tuple[float, Setting]] = []
            # `left` is read here, before the first of these settings is counted
            for changed in (_with(setting, parameter, value) for value in proposed[:left]):
                left -= 1
                tried()
                if not table.possible(changed):
                    continue
                # racing: `begun` knows only a part of the queries
                if _hopeless(list(_differences(table.begun, seen, setting, changed))):
                    gains.append((0.0, changed))
                    continue
                differences = list(_differences(table.values, seen, setting, changed))
                # proposals come farthest first: no effect at the farthest value means none at all
                if number == 0 and not gains and not any(column.any() for column in differences):
                    idle.add(parameter.name)
                    break
                gains.append((_assured_gain(differences), changed))
            better = [changed for gain, changed in sorted(gains, key=lambda entry: -entry[0]) if gain > 0]
            setting = next((changed for changed in better if not _harms(table, seen, changed)), setting)
    return TuningResult(_simplest(table, space, seen, setting), frozenset(idle))


def _simplest(table: Trials, space: Sequence[Parameter], seen: Seen, setting: Setting) -> Setting:
    """The setting without the changes that gain no more than their standard error."""
    for parameter in space:
        simpler = _with(setting, parameter, parameter.start)
        if simpler == setting or not table.possible(simpler) or _harms(table, seen, simpler):
            continue
        if not _assured_gain(list(_differences(table.values, seen, simpler, setting))):
            setting = simpler
    return setting


def _with(setting: Setting, parameter: Parameter, value: float) -> Setting:
    """The setting with another value of one parameter; a start value is omitted."""
    changed = {**setting, parameter.name: value}
    return {name: held for name, held in changed.items() if name != parameter.name or held != parameter.start}


def _differences(values: Callable[[int, Setting], Values], seen: Seen, a: Setting, b: Setting) -> Iterator[Column]:
    """The objective of b minus that of a, per query for which both are known, one column per dataset."""
    for place, rows in seen.items():
        differences = (values(place, b)[OBJECTIVE] - values(place, a)[OBJECTIVE])[rows]
        yield differences[~np.isnan(differences)]


def _gain(differences: Sequence[Column]) -> tuple[float, float]:
    """The mean difference per dataset, averaged over the datasets, and its standard error."""
    known = [column for column in differences if len(column)]
    # variance of the mean of independent dataset means
    variance = sum(float(column.var(ddof=1)) / len(column) for column in known if len(column) > 1)
    # (1 / D) · sqrt(Σ s_d² / n_d) over the D datasets with a known difference
    return float(np.mean([column.mean() for column in known])), sqrt(variance) / len(known)


def _assured_gain(differences: Sequence[Column]) -> float:
    """The gain if it exceeds its standard error, else 0."""
    gain, error = _gain(differences)
    return gain if gain > error else 0.0


def _hopeless(differences: Sequence[Column]) -> bool:
    """Whether there is a loss that exceeds its standard error."""
    gain, error = _gain(differences)
    return gain + error < 0


def _harms(table: Trials, seen: Seen, setting: Setting) -> bool:
    """Whether a setting is significantly worse than the start on any of the datasets."""
    return any(
        column.mean() < 0 and anytime_p(column) < ALPHA for column in _differences(table.values, seen, START, setting)
    )
