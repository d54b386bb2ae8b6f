"""Ablation: measures how much each step of a pipeline contributes (feature E6).

The pipeline is compared with itself without one step, once for each removable step. Each variant is derived from the
full pipeline as a value and built by the same builder; no component has a switch for it.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Unpack

from speckit_memory.config.pipelines.pipeline_file import StepEntry
from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.measuring.measure import Answer
from speckit_memory.evaluation.running.report import EvalReport
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions, EvaluationRun
from speckit_memory.evaluation.statistics.comparison import (
    COMPARED_METRICS,
    Comparison,
    compare,
    largest_weight,
    macro_averaged,
)
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
from speckit_memory.pipeline.configuration.builder import check_pipeline, examine
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.configuration.variants import without
from speckit_memory.pipeline.roles.registry import Registry


def ablate(
    datasets: abc.Sequence[Path | GroundSource],
    pipeline: PipelineSource,
    *,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> AblationReport:
    """Measures a pipeline against itself without each step in turn.

    Removable steps are every step of query understanding, channel, signal and reranker, and annotators marked optional
    (the others see a sealed ranking). Where other steps name a removed channel in their parameters, as fusion weights
    do, that mention is removed too. The comparisons over all datasets form one family, those on single datasets
    another; a step that changes nothing is in neither, because no test could find it different (Tarone 1990).

    Args:
        datasets: Dataset folders or other sources to measure on.
        pipeline: Path, preset or value of the full pipeline.
        overrides: YAML values by "step.parameter", applied to the full pipeline.
        options: See `EvaluationOptions`.

    Returns:
        The contribution of each removable step, and why the other steps cannot be removed.

    Raises:
        SpeckitError: With every problem of the datasets or the pipeline.
    """
    evaluation = Evaluation(*datasets, **options)
    grounds = evaluation.grounds
    registry = components.registry(evaluation.environ)
    checked = examine(pipeline, registry, evaluation.environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    whole = checked.effective
    variants, needed = _variants(whole, registry)
    pipelines = [whole, *(variant for _, variant in variants)]
    evaluated = [evaluation.measure(pipelines, place) for place in range(len(grounds))]
    evaluations = tuple(one.report for one in evaluated)
    return AblationReport(evaluations, tuple(_worth(evaluated, [step for step, _ in variants])), needed)


def _variants(full: Effective, registry: Registry) -> tuple[list[tuple[StepEntry, Effective]], dict[str, str]]:
    """The pipelines without one step, each with that step; and, for each step that is needed, the reason."""
    variants: list[tuple[StepEntry, Effective]] = []
    needed: dict[str, str] = {}
    for step in _removable(full):
        checked = check_pipeline(_without(full, step), registry)
        # other steps may name the channel: try again with those mentions removed
        if checked.problems and step.slot == "channels":
            checked = check_pipeline(_without(full, step, forgotten=True), registry)
        if checked.problems:
            needed[step.id] = "; ".join(problem.message for problem in SpeckitError.of(checked.problems).problems)
        else:
            variants.append((step, checked.effective))
    return variants, needed


def _removable(whole: Effective) -> list[StepEntry]:
    return [step for step in whole.steps() if step.slot != "annotate" or step.optional]


def _without(whole: Effective, step: StepEntry, *, forgotten: bool = False) -> Effective:
    """The pipeline without one step, named "without STEP"."""
    return replace(without(whole, step.id, forgotten=forgotten), name=f"without {step.id}")


def _worth(evaluated: abc.Sequence[EvaluationRun], left_out: abc.Sequence[StepEntry]) -> Iterator[Worth]:
    """The contribution of each removed step, in the order in which the pipelines were measured."""
    # the first pipeline measured is the full one
    full, *variants = evaluated[0].values
    changed = {name: [place for place, one in enumerate(evaluated) if _differ(one, name, full)] for name in variants}
    # a variant without any difference is no test and would only cost the others power
    exercised = [name for name in variants if changed[name]]
    # one family over all datasets, weighted so that each counts the same
    together = {name: macro_averaged([one.values[name] for one in evaluated]) for name in (full, *exercised)}
    largest = largest_weight([one.values[full] for one in evaluated])
    overall = compare(together, [(name, full) for name in exercised], largest=largest)
    # Columns are keyed "place/name", so that each dataset is compared by itself within one family.
    apart = {f"{place}/{name}": column for place, one in enumerate(evaluated) for name, column in one.values.items()}
    pairs = [(f"{place}/{name}", f"{place}/{full}") for name in exercised for place in changed[name]]
    # a second family: each variant on each dataset that it changes
    single = compare(apart, pairs)
    for number, (step, name) in enumerate(zip(left_out, variants, strict=True), 1):
        shares = tuple(
            StepShare(
                dataset=report.dataset,
                comparisons=tuple(replace(c, a=name, b=full) for c in single if c.a == f"{place}/{name}"),
                cost_ms=round(report.pipelines[0].latency.p50 - report.pipelines[number].latency.p50, 3),
                degraded_queries=sum(
                    lost.queries for lost in report.pipelines[0].degraded_parts if lost.part == step.id
                ),
            )
            for place, report in enumerate(one.report for one in evaluated)
        )
        yield Worth(
            step=step.id,
            slot=step.slot,
            comparisons=tuple(c for c in overall if c.a == name),
            cost_ms=round(sum(share.cost_ms for share in shares) / len(shares), 3),
            degraded_queries=sum(share.degraded_queries for share in shares),
            by_dataset=shares,
            changed_answers=sum(_changed(one.answers[full], one.answers[name]) for one in evaluated),
        )


def _changed(before: abc.Sequence[Answer], after: abc.Sequence[Answer]) -> int:
    """Counts the answers that differ in rows, scores, plan or warning; times are not compared."""
    told = ([(one.ranking, one.complexity, one.intent, one.gap) for one in side] for side in (before, after))
    return sum(one != other for one, other in zip(*told, strict=True))


def _differ(evaluated: EvaluationRun, a: str, b: str) -> bool:
    """Whether any metric of any query differs between two pipelines."""
    values = evaluated.values
    return any((values[a][metric] != values[b][metric]).any() for metric in values[a])


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
