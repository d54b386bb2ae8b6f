"""Tuning: better values for the parameters of a pipeline, found on some queries and judged on others.

The same coordinate search runs several times: on all queries for the proposed values, and without each fold of queries
and without each dataset for the figures that judge them. No query is used both to choose and to judge. A search tries
one parameter at a time, a few values each, in a shrinking window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Unpack

import numpy as np

from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError, out_of_range
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.measuring.measure import EvaluationProgress, OnMeasured
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions
from speckit_memory.evaluation.running.trials import (
    START,
    Trials,
    asking,
    open_sets,
    work,
)
from speckit_memory.evaluation.running.tunable import Parameter, Setting, overrides, tunable
from speckit_memory.evaluation.statistics import folds as splits
from speckit_memory.evaluation.statistics.comparison import ALPHA, Values, compare, largest_weight, macro_averaged
from speckit_memory.evaluation.statistics.folds import Rows
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.sequential import anytime_p
from speckit_memory.evaluation.tuning.tuning_report import OBJECTIVE, SetFigures, TunedParameter, TuneReport
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.ports import Column

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


TRIALS = 100
SEED = 20


def tune(
    pipeline: PipelineSource,
    datasets: Sequence[Path | GroundSource],
    *,
    parameters: Sequence[str] = (),
    folds: int = splits.FOLDS,
    trials: int = TRIALS,
    seed: int = SEED,
    jobs: int = 1,
    **options: Unpack[EvaluationOptions],
) -> TuneReport:
    """Searches the tunable parameters of a pipeline.

    The objective is nDCG@10, averaged over the queries of each dataset and then over the datasets. There is one search
    on all queries, one without each fold and, with several datasets, one without each of them. Equal arguments give
    equal reports.

    Args:
        pipeline: Path, preset or value.
        datasets: Dataset folders or other sources to tune on.
        parameters: Names of the parameters to search; none for all tunable ones.
        folds: Number of folds, at least 2.
        trials: Maximum number of settings that one search tries.
        seed: Seeds samples, folds and searches.
        jobs: Number of processes that share the queries; it does not change results.
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: E030 or E033 for parameters that cannot be tuned, E032 for numbers out of range, or with every
            problem of the pipeline or the datasets.
    """
    evaluation = Evaluation(*datasets, **options)
    environ, report = evaluation.environ, evaluation.progress
    checked = examine(pipeline, components.registry(environ), environ)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    whole = checked.effective
    space = tunable(checked.bound, parameters)
    if trials < 1:
        raise SpeckitError.of([out_of_range("the number of trials", trials, "1 and above")])
    asked = [(ground, evaluation.sample(ground, seed)) for ground in evaluation.grounds]
    sizes = {ground.dataset.name: len(chosen) for ground, chosen in asked}
    splits.check_folds(folds, sizes)
    with ExitStack() as stack:
        sets = stack.enter_context(open_sets(asked, whole, environ=environ, progress=report))
        moment = evaluation.now
        ask = stack.enter_context(asking(work(sets, whole, environ, moment), jobs))
        table = Trials(sets, ask, whole, environ, overrides, now=moment, seed=seed)
        rng = np.random.default_rng(seed)
        fold_of = [splits.folds(size, folds, rng) for size in sizes.values()]
        views = list(_views(fold_of, folds))
        found = [
            _search(table, space, seen, trials, seed, place, len(views), report) for place, seen in enumerate(views)
        ]
        # in the order of `_views`
        final, by_fold, without = found[0], found[1 : folds + 1], found[folds + 1 :]
        every = [np.arange(size) for size in sizes.values()]
        start = [table.judged(place, START, rows) for place, rows in enumerate(every)]
        held_out = [_held_out(table, place, fold_of[place], by_fold) for place in range(len(sets))]
        left_out = [table.judged(place, one.setting, every[place]) for place, one in enumerate(without)]
        warnings = tuple(f"{opened.name}: {warning}" for opened in sets for warning in opened.warnings)
    return TuneReport(
        pipeline=checked.effective.name,
        hash=checked.hash,
        seed=seed,
        folds=folds,
        trials=trials,
        settings=table.measured,
        parameters=tuple(_tuned(parameter, final, by_fold) for parameter in space),
        overall=_figures("mean of all", macro_averaged(start), macro_averaged(held_out), largest_weight(start)),
        held_out=tuple(_figures(name, a, b) for name, a, b in zip(sizes, start, held_out, strict=True)),
        left_out=tuple(_figures(name, a, b) for name, a, b in zip(sizes, start, left_out, strict=False)),
        overrides=overrides(final.setting),
        warnings=warnings,
    )


def _views(fold_of: Sequence[splits.Rows], folds: int) -> Iterator[Seen]:
    """The queries that each search may use: all; all but one fold; all but one dataset, when there are several."""
    yield {place: np.arange(len(fold)) for place, fold in enumerate(fold_of)}
    for left_out in range(folds):
        yield {place: np.flatnonzero(fold != left_out) for place, fold in enumerate(fold_of)}
    for left_out in range(len(fold_of)) if len(fold_of) > 1 else ():
        yield {place: np.arange(len(fold)) for place, fold in enumerate(fold_of) if place != left_out}


def _search(
    table: Trials,
    space: Sequence[Parameter],
    seen: Seen,
    trials: int,
    seed: int,
    place: int,
    searches: int,
    report: OnMeasured,
) -> TuningResult:
    """Runs one of several searches; reports its progress as a share of all."""
    done = place * trials

    def tried() -> None:
        nonlocal done
        done += 1
        report(EvaluationProgress("search", done, searches * trials))

    found = search(table, space, seen, budget=trials, seed=seed, tried=tried)
    report(EvaluationProgress("search", (place + 1) * trials, searches * trials))
    return found


def _held_out(table: Trials, place: int, fold_of: splits.Rows, by_fold: Sequence[TuningResult]) -> Values:
    """The metrics of each query of a dataset by the setting that was found without its fold."""
    values = {metric: np.empty(len(fold_of)) for metric in METRICS}
    for fold, found in enumerate(by_fold):
        rows = np.flatnonzero(fold_of == fold)
        for metric, column in table.judged(place, found.setting, rows).items():
            values[metric][rows] = column
    return values


def _figures(name: str, start: Values, tuned: Values, largest: float = 1.0) -> SetFigures:
    comparisons = compare({"start": start, "tuned": tuned}, [("start", "tuned")], largest=largest)
    gains = tuned[OBJECTIVE] - start[OBJECTIVE]
    error = float(gains.std()) / sqrt(len(gains))
    means = [{metric: float(values[metric].mean()) for metric in METRICS} for values in (start, tuned)]
    return SetFigures(name, len(start[METRICS[0]]), means[0], means[1], error, comparisons)


def _tuned(parameter: Parameter, final: TuningResult, by_fold: Sequence[TuningResult]) -> TunedParameter:
    return TunedParameter(
        parameter,
        final.value(parameter),
        tuple(found.value(parameter) for found in by_fold),
        idle=parameter.name in final.idle,
    )
