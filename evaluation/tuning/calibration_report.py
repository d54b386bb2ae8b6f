"""The report of a calibration: threshold, false alarms and detection, also as lines of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
from speckit_memory.evaluation.statistics.sequential import mean_interval
from speckit_memory.pipeline.model.columns import Mask
from speckit_memory.pipeline.ports import Column

_KINDS = ("answerable", "foreign", "removed")


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of `n` questions and its 95 % interval; both None without a question."""

    share: float | None
    ci95: tuple[float, float] | None
    n: int

    @classmethod
    def of(cls, warned: Mask, weights: Column) -> Rate:
        """The weighted share of questions with a warning; the mean of the weights is 1."""
        if not len(warned):
            return cls(None, None, 0)
        # (n,) float64 in [0, weights.max()]
        column = weights * warned
        return cls(float(np.mean(column)), mean_interval(column, most=float(weights.max())), len(warned))

    def __str__(self) -> str:
        if self.share is None or self.ci95 is None:
            return "-"
        return f"{self.share:.1%} ({self.ci95[0]:.1%} to {self.ci95[1]:.1%})"


@dataclass(frozen=True, slots=True)
class Detection:
    """How often a threshold warns on one dataset, or on all.

    `answerable`: judged queries, where a warning is a false alarm. `foreign`: queries of other datasets. `removed`: the
    judged queries with their relevant documents removed, while documents on the same topics remain.
    """

    dataset: str
    answerable: Rate
    foreign: Rate
    removed: Rate

    def cells(self) -> list[str]:
        """A row of the table of rates."""
        return [self.dataset, f"{self.answerable.n:,}", *(str(getattr(self, kind)) for kind in _KINDS)]


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The calibration of the step named `step`.

    `start` is the threshold before the calibration (None when the step had another form) and `before` its rates.
    `overall` and `held_out` judge each query by the threshold fitted without its fold, `left_out` judges each dataset
    by the threshold fitted on the others (empty for a single dataset).
    """

    pipeline: str
    hash: str
    step: str
    start: float | None
    false_alarm_rate: float
    threshold: float
    by_fold: tuple[float, ...]
    seed: int
    before: Detection | None
    overall: Detection
    held_out: tuple[Detection, ...]
    left_out: tuple[Detection, ...]
    warnings: tuple[str, ...] = ()
    ENTRIES: ClassVar = {
        "start": "threshold.start",
        "threshold": "threshold.fitted",
        "by_fold": "threshold.by_fold",
        "overall": "held_out.overall",
        "held_out": "held_out.datasets",
    }

    @property
    def overrides(self) -> Mapping[str, str]:
        """The overrides that turn the pipeline into the calibrated one."""
        return {
            f"{self.step}.form": "coverage",
            f"{self.step}.min_coverage": repr(self.threshold),
            f"{self.step}.false_alarm_rate": repr(self.false_alarm_rate),
        }

    def as_report(self) -> Report:
        """The threshold and tables of the rates."""
        return Report(
            f"{self.pipeline}: {self.step} warns below a coverage of {self.threshold:g}, fitted to at most "
            f"{self.false_alarm_rate:.1%} false alarms",
            tables=self._tables(),
            notes=warnings_of(self.warnings),
            data=as_document(self),
        )

    def heading(self) -> list[str]:
        """The comment lines on the threshold's origin, for the head of a pipeline file."""
        sizes = ", ".join(f"{detection.dataset} ({detection.answerable.n:,} queries)" for detection in self.held_out)
        return [
            f"Calibrated from '{self.pipeline}' (hash {self.hash}) on {sizes}.",
            f"At most {self.false_alarm_rate:.1%} false alarms; {len(self.by_fold)} folds, seed {self.seed}.",
            *(line for table in self._tables() for line in str(table).splitlines()),
        ]

    def remarks(self) -> dict[str, list[str]]:
        """The comment lines above the step, for a pipeline file."""
        start = "another form" if self.start is None else f"{self.start:g}"
        folds = ", ".join(f"{value:g}" for value in self.by_fold)
        lines = [
            f"min_coverage: {start} -> {self.threshold:g} (by fold: {folds})",
            f"Held out, it warns on {self.overall.answerable} of the answerable questions, on {self.overall.removed}",
            "of the same without their relevant documents",
        ]
        if self.overall.foreign.n:
            lines[-1] += f", and on {self.overall.foreign} of foreign ones"
        return {self.step: lines}

    def _tables(self) -> list[Table]:
        head = ["queries", "false alarms", "foreign found", "removed found"]
        several = [self.overall] if len(self.held_out) > 1 else []
        tables = [[["held-out folds", *head], *(one.cells() for one in (*several, *self.held_out))]]
        if self.left_out:
            tables.append([["dataset left out", *head], *(one.cells() for one in self.left_out)])
        if self.before is not None:
            tables.append([["threshold before", *head], self.before.cells()])
        return [Table(table) for table in tables]
