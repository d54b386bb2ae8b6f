"""Stores the figures of a live experiment when a flag is promoted by it, because its queries are pruned in time.

Feature P11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from speckit_memory.config.flags.criterion import METRICS
from speckit_memory.evaluation.experiments.criteria import Figure, Figures
from speckit_memory.evaluation.experiments.experiment_report import ExperimentReport
from speckit_memory.evaluation.statistics.document import as_document
from speckit_memory.memory.store.evaluation.records import StoredEvaluation

KIND = "promotion"


def as_evaluation(report: ExperimentReport, figures: Figures, at: float) -> StoredEvaluation:
    """The report and every figure that a criterion can use, under the id of the experiment; no query is quoted."""
    document = {**archive_report(report, figures), "report": as_document(report)}
    return StoredEvaluation(report.id, KIND, at, "live", "", document)


def archive_report(report: ExperimentReport, figures: Figures) -> dict[str, Any]:
    """The two pipelines and every figure that a criterion can use, as a document for `ArchivedFigures`."""
    return {
        "pipelines": [{"name": one.name, "hash": one.hash} for one in (report.control, report.variant)],
        "compared": report.compared,
        "differences": _as_document(figures.difference),
        "own": _as_document(figures.own),
    }


@dataclass(frozen=True, slots=True)
class ArchivedFigures:
    """The figures of an experiment at the time when it promoted a flag."""

    document: Mapping[str, Any]

    def difference(self, metric: str) -> Figure | None:
        """The variant minus the control at that time."""
        return _read(self.document["differences"].get(metric))

    def own(self, metric: str) -> Figure | None:
        """The variant's own figure, or the agreement of both, at that time."""
        return _read(self.document["own"].get(metric))


def _as_document(figure: Callable[[str], Figure | None]) -> dict[str, dict[str, Any]]:
    found = {metric: figure(metric) for metric in METRICS}
    return {
        metric: {
            "value": one.value,
            "queries": one.queries,
            # JSON has no infinity: an open end is null, and `_read` restores it
            "interval": one.interval and [end if isfinite(end) else None for end in one.interval],
            "p": one.p,
        }
        for metric, one in found.items()
        if one is not None
    }


def _read(entry: Mapping[str, Any] | None) -> Figure | None:
    if entry is None:
        return None
    interval = None
    if entry["interval"]:
        low, high = entry["interval"]
        interval = (-inf if low is None else low, inf if high is None else high)
    return Figure(entry["value"], entry["queries"], interval, entry["p"])
