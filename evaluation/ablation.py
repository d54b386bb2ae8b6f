"""Ablation: what each step of a pipeline is worth (feature E6).

The pipeline runs against itself without one step, once for each step that can be left out. Each variant is a pipeline
file of its own, built by the same builder as every other; no switch inside a component takes part.
"""

from __future__ import annotations

import json
import os
from collections import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from config.errors import SpeckitError
from config.pipeline_file import CANDIDATE_SLOTS, SLOTS, Step
from config.yaml_reader import Mapping as YamlMapping
from config.yaml_reader import Node, Sequence, plain
from engine import pipelines
from evaluation.comparison import Comparison
from evaluation.dataset import read
from evaluation.measure import Report
from evaluation.report import EvalReport, PipelineFigures, aligned, comparison_json
from evaluation.run import evaluate_pipelines
from pipeline.effective import Effective, load


@dataclass(frozen=True, slots=True)
class Worth:
    """What one step is worth: the full pipeline compared with the pipeline without the step.

    In `comparisons` a positive delta, and "better", mean that the step helps. `cost_ms` is the median latency that the
    step costs: the full pipeline's minus the variant's. `degraded_queries` counts the queries in which the step did not
    do its work in the full pipeline: there the comparison says nothing about it.
    """

    step: str
    slot: str
    comparisons: tuple[Comparison, ...]
    cost_ms: float
    degraded_queries: int


@dataclass(frozen=True, slots=True)
class AblationReport:
    """The worth of every step that can be left out; `needed` says of the others why they cannot."""

    evaluation: EvalReport
    full: PipelineFigures
    steps: tuple[Worth, ...]
    needed: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "dataset": self.evaluation.dataset,
            "documents": self.evaluation.documents,
            "queries": self.evaluation.queries,
            "excluded": {"no_relevant": self.evaluation.no_relevant},
            "pipeline": self.full.as_json(),
            "steps": [
                {
                    "step": worth.step,
                    "slot": worth.slot,
                    "cost_ms": worth.cost_ms,
                    "degraded_queries": worth.degraded_queries,
                    "comparisons": [comparison_json(comparison) for comparison in worth.comparisons],
                }
                for worth in self.steps
            ],
            "needed": dict(self.needed),
            "warnings": list(self.evaluation.warnings),
        }

    def as_text(self) -> str:
        """A table with a line for each step and metric."""
        heading = f"{self.evaluation.dataset}: {self.full.name}, {self.evaluation.queries:,} queries; "
        heading += "what each step adds to the pipeline without it"
        rows = [["step", "metric", "adds", "95 % interval", "p adjusted", "verdict", "costs ms"]]
        for worth in self.steps:
            idle = worth.degraded_queries == self.evaluation.queries
            for c in worth.comparisons:
                verdict = "did not run" if idle else _WORDS[c.verdict]
                interval = f"{c.ci95[0]:+.4f} to {c.ci95[1]:+.4f}"
                figures = [
                    f"{c.delta:+.4f}",
                    interval,
                    f"{c.p_adjusted:.4f}",
                    verdict,
                    f"{worth.cost_ms:.1f}",
                ]
                rows.append([worth.step, c.metric, *figures])
        needed = [f"{step} is needed: {reason}" for step, reason in self.needed.items()]
        warnings = [f"warning: {warning}" for warning in self.evaluation.all_warnings()]
        return "\n\n".join(block for block in (heading, aligned(rows), "\n".join([*needed, *warnings])) if block)


_WORDS = {"better": "helps", "worse": "harms", "same": "no effect", "undecided": "undecided"}


def ablate(
    dataset: Path,
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
    do, the mention goes with the channel. All comparisons form one family. Raises SpeckitError.
    """
    environ = os.environ if environ is None else environ
    data = read(dataset)
    if problems := pipelines.check(pipeline, environ, overrides):
        raise SpeckitError.of(problems)
    whole = load(pipeline, environ, overrides)
    with TemporaryDirectory(prefix="speckit-ablation-") as name:
        folder = Path(name)
        full = _write(folder / "full.yaml", whole)
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
        report = evaluate_pipelines(
            data, [full, *variants], _against_first, queries=queries, progress=progress, environ=environ, now=now
        )
    return AblationReport(report, report.pipelines[0], tuple(_worth(report, [*variants.values()])), needed)


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


def _against_first(names: abc.Sequence[str]) -> list[tuple[str, str]]:
    """The full pipeline, which comes first, against each variant."""
    return [(variant, names[0]) for variant in names[1:]]


def _worth(report: EvalReport, left_out: abc.Sequence[Step]) -> Iterator[Worth]:
    full, *variants = report.pipelines
    for step, variant in zip(left_out, variants, strict=True):
        yield Worth(
            step=step.id,
            slot=step.slot,
            comparisons=tuple(c for c in report.comparisons if c.a == variant.name),
            cost_ms=round(full.latency.p50 - variant.latency.p50, 3),
            degraded_queries=sum(lost.queries for lost in full.degraded_parts if lost.part == step.id),
        )
