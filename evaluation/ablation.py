"""Ablation: what each step of a pipeline is worth (feature E6).

The pipeline runs against itself without one step, once for each step that can be left out. Each variant is a pipeline
file of its own, built by the same builder as every other; no switch inside a component takes part.
"""

from __future__ import annotations

import json
import os
from collections import abc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from speckit_memory.config.pipeline_file import CANDIDATE_SLOTS, SLOTS, Step
from speckit_memory.config.sources import NOTHING
from speckit_memory.config.yaml_reader import Mapping as YamlMapping
from speckit_memory.config.yaml_reader import Node, Sequence, plain
from speckit_memory.engine import assembly, pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.ablation_report import AblationReport, Share, Worth
from speckit_memory.evaluation.comparison import Values, compare, macro_averaged
from speckit_memory.evaluation.measure import Report
from speckit_memory.evaluation.report import EvalReport
from speckit_memory.evaluation.run import evaluate_pipelines
from speckit_memory.evaluation.trials import read_sets
from speckit_memory.pipeline.builder import examine
from speckit_memory.pipeline.effective import Effective

Evaluated = tuple[EvalReport, Mapping[str, Values]]
"""One dataset: the figures of the full pipeline and of the variants, and their values for each query."""

SEED = 20
"""Seeds the draws of the tests, so that a report can be repeated."""


def ablate(
    datasets: abc.Sequence[Path],
    pipeline: str,
    *,
    queries: int | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: Report | None = None,
    environ: Mapping[str, str] | None = None,
    now: float | None = None,
) -> AblationReport:
    """Measures a pipeline against itself without each step in turn; parameters as in `evaluation.run.run`.

    Left out in turn: every step of query understanding, channel, signal and reranker, and annotators that are marked
    optional (the others see a sealed ranking). Where other steps name a channel in their parameters, as fusion weights
    do, the mention goes with the channel. The comparisons over all datasets form one family, those on single datasets
    another; a step that changes nothing is in neither, because no test could find it different (Tarone 1990). Raises
    SpeckitError.
    """
    environ = os.environ if environ is None else environ
    sets = read_sets(datasets)
    checked = examine(pipeline, assembly.registry(environ), environ, overrides)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    whole = checked.effective
    report = progress or (lambda _: None)
    with TemporaryDirectory(prefix="speckit-ablation-") as name:
        folder = Path(name)
        full = _write(folder / "full.yaml", whole)
        variants, needed = _variants(folder, whole, environ)
        evaluated = [
            evaluate_pipelines(data, [full, *variants], queries=queries, progress=report, environ=environ, now=now)
            for data in sets
        ]
    evaluations = tuple(evaluation for evaluation, _ in evaluated)
    return AblationReport(evaluations, tuple(_worth(evaluated, [*variants.values()])), needed)


def _variants(folder: Path, whole: Effective, environ: Mapping[str, str]) -> tuple[dict[str, Step], dict[str, str]]:
    """The files of the pipelines without one step, and of the steps that are needed the reason."""
    variants: dict[str, Step] = {}
    needed: dict[str, str] = {}
    for number, step in enumerate(_removable(whole)):
        file = _write(folder / f"without-{number}.yaml", without(whole, step))
        problems = pipelines.check(file, environ)
        if problems and step.slot == "channels":
            _write(folder / f"without-{number}.yaml", unmentioned(without(whole, step), step.id))
            problems = pipelines.check(file, environ)
        if problems:
            needed[step.id] = "; ".join(problem.message for problem in problems)
        else:
            variants[file] = step
    return variants, needed


def _removable(whole: Effective) -> list[Step]:
    return [step for step in whole.steps() if step.slot != "annotate" or step.optional]


def without(whole: Effective, left_out: Step) -> Effective:
    """The pipeline without one step, and named so."""
    steps = tuple(step for step in whole.slots[left_out.slot] if step is not left_out)
    return replace(whole, name=f"without {left_out.id}", slots={**whole.slots, left_out.slot: steps})


def unmentioned(effective: Effective, channel: str) -> Effective:
    """The pipeline with every mention of a channel taken out of the parameters of its steps."""
    slots = {
        slot: tuple(replace(step, params=_forgotten(step.params, channel)) for step in steps)
        for slot, steps in effective.slots.items()
    }
    return replace(effective, slots=slots)


def _forgotten(mapping: YamlMapping, name: str) -> YamlMapping:
    """The mapping without the keys and list items that are this name."""
    kept = (replace(entry, value=_forget(entry.value, name)) for entry in mapping.entries if entry.key != name)
    return replace(mapping, entries=tuple(kept))


def _forget(node: Node, name: str) -> Node:
    match node:
        case YamlMapping():
            return _forgotten(node, name)
        case Sequence(items=items):
            return replace(node, items=tuple(_forget(item, name) for item in items if plain(item) != name))
    return node


def _write(file: Path, effective: Effective) -> str:
    file.write_text(pipeline_text(effective), encoding="utf-8")
    return str(file)


def pipeline_text(effective: Effective) -> str:
    """A pipeline file that says all of an effective pipeline: flags resolved, overrides applied, nothing inherited.

    It is written as JSON, which every YAML reader reads.
    """
    slots = {slot: [_declared(step) for step in effective.slots[slot]] for slot in SLOTS}
    document = {
        "pipeline": effective.name,
        "extends": NOTHING,
        "budgets_ms": effective.budgets_ms,
        "candidates": {slot: slots.pop(slot) for slot in CANDIDATE_SLOTS},
        **slots,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _declared(step: Step) -> dict[str, object]:
    params = plain(step.params)
    assert isinstance(params, dict)  # the parameters of a step are a mapping
    head: dict[str, object] = {"use": step.use, "id": step.id}
    return head | ({"optional": True} if step.optional else {}) | params


def _worth(evaluated: abc.Sequence[Evaluated], left_out: abc.Sequence[Step]) -> Iterator[Worth]:
    """What each step that was left out is worth, in the order in which the pipelines were measured."""
    full, *variants = evaluated[0][1]
    changed = {name: [place for place, one in enumerate(evaluated) if _differ(one, name, full)] for name in variants}
    exercised = [name for name in variants if changed[name]]
    together = {name: macro_averaged([values[name] for _, values in evaluated]) for name in (full, *exercised)}
    overall = compare(together, [(name, full) for name in exercised], seed=SEED)
    apart = {
        f"{place}/{name}": column for place, (_, values) in enumerate(evaluated) for name, column in values.items()
    }
    pairs = [(f"{place}/{name}", f"{place}/{full}") for name in exercised for place in changed[name]]
    single = compare(apart, pairs, seed=SEED)
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
            for place, (report, _) in enumerate(evaluated)
        )
        yield Worth(
            step=step.id,
            slot=step.slot,
            comparisons=tuple(c for c in overall if c.a == name),
            cost_ms=round(sum(share.cost_ms for share in shares) / len(shares), 3),
            degraded_queries=sum(share.degraded_queries for share in shares),
            by_dataset=shares,
        )


def _differ(evaluated: Evaluated, a: str, b: str) -> bool:
    """Whether any metric of any query differs between two pipelines."""
    values = evaluated[1]
    return any((values[a][metric] != values[b][metric]).any() for metric in values[a])
