"""A metric over time, from stored evaluations, with their ids (feature E1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from speckit_memory.evaluation.statistics.report import Report, Table
from speckit_memory.memory.store.evaluation.records import StoredFigure


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
