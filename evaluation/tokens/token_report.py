"""The report of `eval tokens`: figures by budget, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from speckit_memory.evaluation.running.report import dataset_title, sentence
from speckit_memory.evaluation.statistics.comparison import Comparison, Values
from speckit_memory.evaluation.statistics.document import as_document
from speckit_memory.evaluation.statistics.report import Report, Table, warnings_of
from speckit_memory.evaluation.tokens.recall_per_token import FIGURES, at

_WHOLE = ("memories", "tokens")


@dataclass(frozen=True, slots=True)
class TokenReport:
    """The figures of answers, by answerer and budget. `values` holds every figure of every query.

    `peers` names the answerers that are simpler systems. `queries` were scored; `no_relevant` more have no relevant
    document and were left out. `warnings` are sentences on the limits of the figures.
    """

    dataset: str
    documents: int
    queries: int
    no_relevant: int
    budgets: tuple[int, ...]
    values: Mapping[str, Values]
    peers: frozenset[str]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...] = ()
    ENTRIES: ClassVar = {
        "no_relevant": "excluded.no_relevant",
        "budgets": "",
        "values": "",
        "peers": "",
        "answers": "answers",
    }

    def mean(self, name: str, figure: str, budget: int) -> float:
        """The mean of a figure over all queries."""
        return float(self.values[name][at(figure, budget)].mean())

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The mean of every figure, by answerer and budget."""
        return [
            {
                "name": name,
                "peer": name in self.peers,
                "budgets": {
                    budget: {figure: self.mean(name, figure, budget) for figure in FIGURES} for budget in self.budgets
                },
            }
            for name in self.values
        ]

    def as_report(self) -> Report:
        """A table for each budget, and a sentence for each comparison."""
        tables = []
        for budget in self.budgets:
            rows = [[f"of {budget:,} tokens", *FIGURES]]
            rows += [[name, *(self._cell(name, figure, budget) for figure in FIGURES)] for name in self.values]
            tables.append(Table(rows))
        return Report(
            dataset_title(self.dataset, self.documents, self.queries, self.no_relevant),
            verdict="\n".join(sentence(comparison, self.queries) for comparison in self.comparisons),
            tables=tables,
            notes=warnings_of(self.warnings),
            data=as_document(self),
        )

    def _cell(self, name: str, figure: str, budget: int) -> str:
        mean = self.mean(name, figure, budget)
        return f"{mean:.1f}" if figure in _WHOLE else f"{mean:.3f}"
