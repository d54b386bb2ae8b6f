"""Stores evaluations in the database next to a store, finds them by id, and lists a metric over time (feature E1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speckit_memory.config.files.paths import is_folder
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.experiments.flag_evidence import KIND as PROMOTION
from speckit_memory.evaluation.judging.preferences import KIND as PREFERENCES
from speckit_memory.evaluation.statistics.report import Report, Table
from speckit_memory.memory.store.evaluation.database import (
    EvaluationDatabase,
    evaluation_file,
    evaluation_label,
    read_if_there,
)
from speckit_memory.memory.store.evaluation.records import StoredEvaluation, StoredFigure

NOT_WANTED = "not kept: --no-keep"


def store_report(report: CompareReport, store: Path | None, further: Mapping[str, Any] | None = None) -> CompareReport:
    """Stores a report next to a store and returns it with a sentence on where it is, or why it is not stored.

    No folder is created: an evaluation does not make a folder a workspace. A file that cannot be written does not lose
    the report, since measuring may have taken an hour.

    Args:
        report: The report to store.
        store: The store; None stores nothing.
        further: More entries of the stored document.
    """
    if store is None:
        return replace(report, keeping=NOT_WANTED, is_kept=False)
    file = evaluation_file(store)
    if not is_folder(file.parent):
        why = f"not kept: there is no folder '{file.parent}'; `speckit-memory init` makes one"
        return replace(report, keeping=why, is_kept=False)
    try:
        with EvaluationDatabase.open(file) as database:
            database.keep(report.stored(further), report.snapshots())
    except SpeckitError as error:
        return replace(report, keeping=not_stored(error), is_kept=False)
    return replace(report, keeping=f"kept as {report.id} in {evaluation_label(file)}")


def not_stored(error: SpeckitError) -> str:
    """A sentence on why a result was not stored, and what to do about it."""
    problem = error.problems[0]
    advice = f"; {'; '.join(problem.actions)}" if problem.actions else ""
    return f"not kept: {problem.message} ({problem.code}){advice}"


def find(store: Path, name: str) -> StoredEvaluation | None:
    """The latest evaluation with this id next to a store; None where there is none, or no database.

    Evidence kept from live experiments and preferences is not returned: those queries cannot be measured again.
    """
    # None also if there is no database: reading creates none.
    stored = read_if_there(store, lambda database: database.evaluation(name))
    return None if stored is not None and stored.kind in (PROMOTION, PREFERENCES) else stored


@dataclass(frozen=True, slots=True)
class History:
    """One metric of every measured pipeline, by time. `metrics` lists the metrics with stored values."""

    metric: str
    measured: Sequence[StoredFigure]
    metrics: Sequence[str]

    def as_report(self) -> Report:
        """A row for each pipeline of each evaluation, the latest last."""
        # `at` is in epoch seconds; `name` is "" where the evaluation does not record it
        evaluations = [
            {
                "id": one.evaluation,
                "command": one.kind,
                "at": one.at,
                "dataset": one.dataset,
                "pipeline": {"name": one.name, "hash": one.figure.pipeline},
                "value": one.figure.value,
                "queries": one.figure.queries,
            }
            for one in self.measured
        ]
        data = {"metric": self.metric, "metrics": list(self.metrics), "evaluations": evaluations}
        if not self.measured:
            others = f"; there are figures of {', '.join(self.metrics)}" if self.metrics else ""
            return Report(f"No kept evaluation measured {self.metric}{others}.", data=data)
        rows = [["at", "id", "command", "dataset", "pipeline", "queries", self.metric]]
        for one in self.measured:
            at = f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M}"
            figures = [f"{one.figure.queries:,}", f"{one.figure.value:.4f}"]
            rows.append([at, one.evaluation, one.kind, one.dataset, one.name or one.figure.pipeline, *figures])
        return Report(f"{self.metric} of kept evaluations", tables=[Table(rows)], data=data)
