"""The report of `eval tokens`: figures by budget, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from speckit_memory.evaluation.running.report import comparison_json, sentence
from speckit_memory.evaluation.statistics.comparison import Comparison, Values
from speckit_memory.evaluation.statistics.tables import Block, Table, plain_text
from speckit_memory.evaluation.tokens.recall_per_token import FIGURES, at

_DIGITS = 6
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

    def mean(self, name: str, figure: str, budget: int) -> float:
        """The mean of a figure over all queries."""
        return float(self.values[name][at(figure, budget)].mean())

    def as_json(self) -> dict[str, Any]:
        """The JSON document of `eval tokens --json`."""
        return {
            "dataset": self.dataset,
            "documents": self.documents,
            "queries": self.queries,
            "excluded": {"no_relevant": self.no_relevant},
            "answers": [
                {
                    "name": name,
                    "peer": name in self.peers,
                    "budgets": {
                        str(budget): {figure: round(self.mean(name, figure, budget), _DIGITS) for figure in FIGURES}
                        for budget in self.budgets
                    },
                }
                for name in self.values
            ],
            "comparisons": [comparison_json(comparison) for comparison in self.comparisons],
            "warnings": list(self.warnings),
        }

    def blocks(self) -> list[Block]:
        """A table for each budget, and a sentence for each comparison."""
        heading = f"{self.dataset}: {self.documents:,} documents, {self.queries:,} queries"
        if self.no_relevant:
            heading += f" ({self.no_relevant:,} more have no relevant document and are left out)"
        blocks: list[Block] = [heading]
        for budget in self.budgets:
            rows = [[f"of {budget:,} tokens", *FIGURES]]
            rows += [[name, *(self._cell(name, figure, budget) for figure in FIGURES)] for name in self.values]
            blocks.append(Table(rows))
        blocks.append("\n".join(sentence(comparison, self.queries) for comparison in self.comparisons))
        blocks.append("\n".join(f"warning: {warning}" for warning in self.warnings))
        return blocks

    def _cell(self, name: str, figure: str, budget: int) -> str:
        mean = self.mean(name, figure, budget)
        return f"{mean:.1f}" if figure in _WHOLE else f"{mean:.3f}"

    def as_text(self) -> str:
        """The report as plain text for a file or a pipe."""
        return plain_text(self.blocks())
