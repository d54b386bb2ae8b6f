"""The report of a tuning: values, comparison with the start, and verdict, also as lines of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from speckit_memory.evaluation.running.report import sentence
from speckit_memory.evaluation.running.tunable import Parameter
from speckit_memory.evaluation.statistics.comparison import Comparison
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of

OBJECTIVE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class TunedParameter:
    """One parameter: its range, the value found on all queries, and those found without each fold.

    `idle` marks a parameter that made no difference to any query: these datasets say nothing about it.
    """

    parameter: Parameter
    value: float
    by_fold: tuple[float, ...]
    idle: bool
    ENTRIES: ClassVar = {"parameter": "", "value": "tuned", "name": "name", "range": "range", "start": "start"}

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return self.parameter.name

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value searched."""
        return self.parameter.low, self.parameter.high

    @property
    def start(self) -> float:
        """The value before the search."""
        return self.parameter.start

    @property
    def moved(self) -> bool:
        """Whether a new value was found."""
        return self.value != self.parameter.start


@dataclass(frozen=True, slots=True)
class SetFigures:
    """The start and the tuned setting on one dataset, each query judged by a setting found without it.

    `start` and `tuned` are means over the `queries`, by metric; `error` is the standard error of the gain.
    """

    dataset: str
    queries: int
    start: Mapping[str, float]
    tuned: Mapping[str, float]
    error: float
    comparisons: tuple[Comparison, ...]

    @property
    def main(self) -> Comparison:
        """The comparison on the objective."""
        return next(comparison for comparison in self.comparisons if comparison.metric == OBJECTIVE)

    def cells(self) -> list[str]:
        """A row of the table of figures."""
        c = self.main
        before, after = self.start[OBJECTIVE], self.tuned[OBJECTIVE]
        figures = [f"{before:.4f}", f"{after:.4f}", f"{c.delta:+.4f}", f"{c.ci95[0]:+.4f} to {c.ci95[1]:+.4f}"]
        return [self.dataset, f"{self.queries:,}", *figures, f"{c.p_adjusted:.4f}", c.verdict]


@dataclass(frozen=True, slots=True)
class TuneReport:
    """The result of one tuning.

    `held_out` compares per dataset, over the queries that each fold held out; `overall` does so over all datasets with
    equal weight; `left_out` judges each dataset by the setting found on the others, empty for one dataset. `settings`
    counts the measured settings. `overrides` turn the pipeline into the setting found on all queries.
    """

    pipeline: str
    hash: str
    seed: int
    folds: int
    trials: int
    settings: int
    parameters: tuple[TunedParameter, ...]
    overall: SetFigures
    held_out: tuple[SetFigures, ...]
    left_out: tuple[SetFigures, ...]
    overrides: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    ENTRIES: ClassVar = {
        "settings": "settings_measured",
        "overall": "held_out.overall",
        "held_out": "held_out.datasets",
        "overrides": "",
        "accepted": "accepted",
        "verdict": "verdict",
    }

    @property
    def accepted(self) -> bool:
        """Whether the setting may be used."""
        return not self.refusal

    @property
    def refusal(self) -> str:
        """Why the setting must not be used; "" when it may be.

        On held-out queries it has to gain more than its standard error, and it must not be significantly worse on any
        dataset.
        """
        if not any(tuned.moved for tuned in self.parameters):
            return "no other value of any parameter gains more than its standard error"
        if self.overall.main.delta <= self.overall.error:
            return "on held-out queries the tuned setting gains no more than its standard error"
        harmed = _worse(self.held_out)
        return f"the tuned setting is significantly worse on {harmed}" if harmed else ""

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        if self.refusal:
            return f"kept the start: {self.refusal}"
        text = f"took the tuned setting: {sentence(self.overall.main, self.overall.queries)}"
        if harmed := _worse(self.left_out):
            text += f"; a setting found without {harmed} is worse there: other data may not gain"
        return text

    @property
    def used(self) -> Mapping[str, str]:
        """The overrides to write: those of the tuned setting, or none when the start is kept."""
        return {} if self.refusal else self.overrides

    def as_report(self) -> Report:
        """Tables of the parameters and of the figures, and the verdict."""
        datasets = f"{len(self.held_out)} {'dataset' if len(self.held_out) == 1 else 'datasets'}"
        return Report(
            f"{self.pipeline}: {len(self.parameters)} parameters, {self.settings:,} settings measured on {datasets}",
            verdict=self.verdict,
            tables=[self._parameters(), *self._figures()],
            notes=warnings_of(self.warnings),
            data=as_document(self),
        )

    def heading(self) -> list[str]:
        """The comment lines on the setting's origin, for the head of a pipeline file."""
        sizes = ", ".join(f"{figures.dataset} ({figures.queries:,} queries)" for figures in self.held_out)
        lines = [
            f"Tuned from '{self.pipeline}' (hash {self.hash}) on {sizes}.",
            f"{len(self.parameters)} parameters, {self.trials} trials a search, {self.folds} folds, seed {self.seed}.",
            f"Verdict: {self.verdict}.",
        ]
        return [*lines, *(line for table in self._figures() for line in str(table).splitlines())]

    def remarks(self) -> dict[str, list[str]]:
        """The comment lines above the steps, for a pipeline file: old and new values, and the values by fold."""
        remarks: dict[str, list[str]] = {}
        for tuned in self.parameters if not self.refusal else ():
            if tuned.moved:
                name, start = ".".join(tuned.parameter.path), tuned.parameter.start
                folds = ", ".join(f"{value:g}" for value in tuned.by_fold)
                line = f"{name}: {start:g} -> {tuned.value:g} (by fold: {folds})"
                remarks.setdefault(tuned.parameter.step, []).append(line)
        return remarks

    def _parameters(self) -> Table:
        rows = [["parameter", "range", "start", "tuned", "by fold"]]
        for tuned in self.parameters:
            bounds = f"{tuned.parameter.low:g} to {tuned.parameter.high:g}"
            value = "no effect" if tuned.idle else f"{tuned.value:g}"
            folds = " ".join(f"{value:g}" for value in tuned.by_fold)
            rows.append([tuned.parameter.name, bounds, f"{tuned.parameter.start:g}", value, folds])
        return Table(rows)

    def _figures(self) -> list[Table]:
        head = ["queries", "start", "tuned", "gain", "95 % interval", "p adjusted", "verdict"]
        several = [self.overall] if len(self.held_out) > 1 else []
        rows = [figures.cells() for figures in (*several, *self.held_out)]
        tables = [Table([[f"{OBJECTIVE}, held-out folds", *head], *rows])]
        if self.left_out:
            tables.append(
                Table([[f"{OBJECTIVE}, dataset left out", *head], *(figures.cells() for figures in self.left_out)])
            )
        return tables


def _worse(figures: Iterable[SetFigures]) -> str:
    """The names of the datasets on which the tuned setting is significantly worse than the start."""
    return ", ".join(one.dataset for one in figures if one.main.verdict == "worse")
