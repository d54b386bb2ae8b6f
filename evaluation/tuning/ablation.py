"""Ablation: what each step of a pipeline is worth (feature E6).

The pipeline runs against itself without one step, once for each step that can be left out. Each variant is derived
from the whole as a value and built by the same builder as every other; no switch inside a component takes part.
"""

from __future__ import annotations

import os
from collections import abc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from speckit_memory.config.pipelines.pipeline_file import Step
from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.measuring.measure import Answer, Report
from speckit_memory.evaluation.running.run import Measured, evaluate_pipelines
from speckit_memory.evaluation.running.trials import read_grounds
from speckit_memory.evaluation.statistics.comparison import compare, largest_weight, macro_averaged
from speckit_memory.evaluation.tuning.ablation_report import AblationReport, Share, Worth
from speckit_memory.pipeline.configuration.builder import examine, examined
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.configuration.variants import without
from speckit_memory.pipeline.roles.registry import Registry


def ablate(
    datasets: abc.Sequence[Path | GroundSource],
    pipeline: PipelineSource,
    *,
    queries: int | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Report | None = None,
    environ: Mapping[str, str] | None = None,
    now: float | None = None,
) -> AblationReport:
    """Measures a pipeline against itself without each step in turn; parameters as in `evaluation.running.run.run`.

    Left out in turn: every step of query understanding, channel, signal and reranker, and annotators that are marked
    optional (the others see a sealed ranking). Where other steps name a channel in their parameters, as fusion weights
    do, the mention goes with the channel. The comparisons over all datasets form one family, those on single datasets
    another; a step that changes nothing is in neither, because no test could find it different (Tarone 1990). Raises
    SpeckitError.
    """
    environ = os.environ if environ is None else environ
    grounds = read_grounds(datasets, environ)
    registry = components.registry(environ)
    checked = examine(pipeline, registry, environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    whole = checked.effective
    report = progress or (lambda _: None)
    variants, needed = _variants(whole, registry)
    pipelines = [whole, *(variant for _, variant in variants)]
    evaluated = [
        evaluate_pipelines(
            ground.dataset, pipelines, queries=queries, progress=report, environ=environ, now=now, opened=ground.opened
        )
        for ground in grounds
    ]
    evaluations = tuple(one.report for one in evaluated)
    return AblationReport(evaluations, tuple(_worth(evaluated, [step for step, _ in variants])), needed)


def _variants(full: Effective, registry: Registry) -> tuple[list[tuple[Step, Effective]], dict[str, str]]:
    """The pipelines without one step, each with the step; and of the steps that are needed the reason."""
    variants: list[tuple[Step, Effective]] = []
    needed: dict[str, str] = {}
    for step in _removable(full):
        checked = examined(_without(full, step), registry)
        if checked.problems and step.slot == "channels":
            checked = examined(_without(full, step, forgotten=True), registry)
        if checked.problems:
            needed[step.id] = "; ".join(problem.message for problem in SpeckitError.of(checked.problems).problems)
        else:
            variants.append((step, checked.effective))
    return variants, needed


def _removable(whole: Effective) -> list[Step]:
    return [step for step in whole.steps() if step.slot != "annotate" or step.optional]


def _without(whole: Effective, step: Step, *, forgotten: bool = False) -> Effective:
    """The pipeline without one step, and named so."""
    return replace(without(whole, step.id, forgotten=forgotten), name=f"without {step.id}")


def _worth(evaluated: abc.Sequence[Measured], left_out: abc.Sequence[Step]) -> Iterator[Worth]:
    """What each step that was left out is worth, in the order in which the pipelines were measured."""
    full, *variants = evaluated[0].values
    changed = {name: [place for place, one in enumerate(evaluated) if _differ(one, name, full)] for name in variants}
    exercised = [name for name in variants if changed[name]]
    together = {name: macro_averaged([one.values[name] for one in evaluated]) for name in (full, *exercised)}
    largest = largest_weight([one.values[full] for one in evaluated])
    overall = compare(together, [(name, full) for name in exercised], largest=largest)
    apart = {f"{place}/{name}": column for place, one in enumerate(evaluated) for name, column in one.values.items()}
    pairs = [(f"{place}/{name}", f"{place}/{full}") for name in exercised for place in changed[name]]
    single = compare(apart, pairs)
    for number, (step, name) in enumerate(zip(left_out, variants, strict=True), 1):
        shares = tuple(
            Share(
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
    """How many answers differ in anything that is kept of them but their times."""
    told = ([(one.ranking, one.complexity, one.intent, one.gap) for one in side] for side in (before, after))
    return sum(one != other for one, other in zip(*told, strict=True))


def _differ(evaluated: Measured, a: str, b: str) -> bool:
    """Whether any metric of any query differs between two pipelines."""
    values = evaluated.values
    return any((values[a][metric] != values[b][metric]).any() for metric in values[a])
