"""The report of an ablation: each step's contribution over all datasets and on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from speckit_memory.evaluation.running.report import EvalReport
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS, Comparison
from speckit_memory.evaluation.statistics.document import as_document
from speckit_memory.evaluation.statistics.report import Report, Table, warnings_of

_WORDS = {"better": "pays", "worse": "harms", "same": "no effect", "undecided": "undecided"}
_MAIN = COMPARED_METRICS[0]


@dataclass(frozen=True, slots=True)
class StepShare:
    """The contribution of one step on one dataset; the fields are those of `Worth`."""

    dataset: str
    comparisons: tuple[Comparison, ...]
    cost_ms: float
    degraded_queries: int


@dataclass(frozen=True, slots=True)
class Worth:
    """The contribution of one step: the full pipeline compared with the pipeline without it.

    `comparisons` are over all datasets with equal weight; a positive delta and "better" mean that the step helps. They
    are empty when removing the step changes no metric of any query. `cost_ms` is the median latency of the full
    pipeline minus that of the variant, averaged over the datasets. `degraded_queries` counts the queries on which the
    step did not do its work in the full pipeline; for these the comparison says nothing about it. `changed_answers`
    counts the queries whose answer differs without the step in a row, a score, the plan or a warning.
    """

    step: str
    slot: str
    comparisons: tuple[Comparison, ...]
    cost_ms: float
    degraded_queries: int
    by_dataset: tuple[StepShare, ...]
    changed_answers: int = 0
    ENTRIES: ClassVar = {"by_dataset": "datasets"}

    def verdict(self, queries: int) -> str:
        """The verdict on nDCG@10 over `queries` queries: pays, harms, no effect, undecided, not exercised or did not
        run."""
        if self.degraded_queries == queries:
            return "did not run"
        return next((_WORDS[c.verdict] for c in self.comparisons if c.metric == _MAIN), "not exercised")


@dataclass(frozen=True, slots=True)
class AblationReport:
    """The contributions of all removable steps; `needed` maps each other step to the reason it cannot be removed."""

    evaluations: tuple[EvalReport, ...]
    steps: tuple[Worth, ...]
    needed: Mapping[str, str]

    @property
    def queries(self) -> int:
        """The number of queries in all datasets."""
        return sum(evaluation.queries for evaluation in self.evaluations)

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.evaluations[0].pipelines[0].name

    def as_report(self) -> Report:
        """A table over all datasets, a table with one column per dataset, and notes on their limits."""
        sets = ", ".join(f"{evaluation.dataset} ({evaluation.queries:,} queries)" for evaluation in self.evaluations)
        verdicts = {worth.step: worth.verdict(self.queries) for worth in self.steps}
        idle, absent = ([s for s, v in verdicts.items() if v == word] for word in ("not exercised", "did not run"))
        notes = [f"Not exercised (no metric of any query changes without them): {', '.join(idle)}."] if idle else []
        acting = [f"{w.step} ({w.changed_answers:,})" for w in self.steps if w.step in idle and w.changed_answers]
        notes += [f"Answers that still change in scores or notes: {', '.join(acting)}."] if acting else []
        notes += [f"Did not run, so nothing is known about them: {', '.join(absent)}."] if absent else []
        notes += [f"{step} is needed: {reason}" for step, reason in self.needed.items()]
        warnings = [f"{one.dataset}: {warning}" for one in self.evaluations for warning in one.all_warnings()]
        measured = [as_document(evaluation) for evaluation in self.evaluations]
        data = {
            "datasets": [
                {name: one[name] for name in ("dataset", "documents", "queries", "excluded")}
                | {"pipeline": one["pipelines"][0]}
                for one in measured
            ],
            "steps": [{**as_document(worth), "verdict": verdicts[worth.step]} for worth in self.steps],
            "needed": dict(self.needed),
            "warnings": warnings,
        }
        return Report(
            f"{self.name} on {sets}: what each step adds to the pipeline without it",
            tables=[self._overall(), *([self._each()] if len(self.evaluations) > 1 else [])],
            notes=[*notes, *warnings_of(warnings)],
            data=data,
        )

    def _overall(self) -> Table:
        rows = [["step", "metric", "adds", "95 % interval", "p adjusted", "verdict", "costs ms"]]
        for worth in self._exercised():
            verdict = worth.verdict(self.queries)
            for c in worth.comparisons:
                figures = [f"{c.delta:+.4f}", f"{c.ci95[0]:+.4f} to {c.ci95[1]:+.4f}", f"{c.p_adjusted:.4f}"]
                word = verdict if c.metric == _MAIN or verdict == "did not run" else _WORDS[c.verdict]
                rows.append([worth.step, c.metric, *figures, word, f"{worth.cost_ms:.1f}"])
        return Table(rows)

    def _each(self) -> Table:
        """nDCG@10 by dataset; * marks significant differences on that dataset."""
        rows = [[f"{_MAIN}, * significant", *(evaluation.dataset for evaluation in self.evaluations), "mean"]]
        for worth in self._exercised():
            cells = [_cell(share.comparisons) for share in worth.by_dataset]
            rows.append([worth.step, *cells, _cell(worth.comparisons)])
        full = [evaluation.pipelines[0].metrics[_MAIN] for evaluation in self.evaluations]
        rows.append([self.name, *(f"{value:.4f} " for value in (*full, sum(full) / len(full)))])
        return Table(rows)

    def _exercised(self) -> list[Worth]:
        return [worth for worth in self.steps if worth.comparisons]


def _cell(comparisons: Sequence[Comparison]) -> str:
    main = next((comparison for comparison in comparisons if comparison.metric == _MAIN), None)
    if main is None:
        return "0 "
    return f"{main.delta:+.4f}{'*' if main.verdict in ('better', 'worse') else ' '}"
