"""A metric over time, from stored evaluations, with their ids (feature E1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from speckit_memory.evaluation.statistics.tables import Block, Table, plain_text
from speckit_memory.memory.store.evaluation.records import StoredFigure


@dataclass(frozen=True, slots=True)
class History:
    """One metric of every measured pipeline, by time. `metrics` lists the metrics with stored values."""

    metric: str
    measured: Sequence[StoredFigure]
    metrics: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Plain data. `at` is in epoch seconds; `name` is "" where the evaluation does not record it."""
        return {
            "metric": self.metric,
            "metrics": list(self.metrics),
            "evaluations": [
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
            ],
        }

    def blocks(self) -> list[Block]:
        """A row for each pipeline of each evaluation, the latest last."""
        if not self.measured:
            others = f"; there are figures of {', '.join(self.metrics)}" if self.metrics else ""
            return [f"No kept evaluation measured {self.metric}{others}."]
        rows = [["at", "id", "command", "dataset", "pipeline", "queries", self.metric]]
        for one in self.measured:
            name = one.name or one.figure.pipeline
            at = f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M}"
            rows.append(
                [at, one.evaluation, one.kind, one.dataset, name, f"{one.figure.queries:,}", f"{one.figure.value:.4f}"]
            )
        return [Table(rows)]

    def as_text(self) -> str:
        """The report as plain text, at full width."""
        return plain_text(self.blocks())
