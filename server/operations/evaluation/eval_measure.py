"""`eval run`, `ablate`, `baseline` and `sensitivity`: measure pipelines on a dataset."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from speckit_memory.server.operations.evaluation.sources import (
    BY_USER,
    NoKeep,
    OneSource,
    Pipelines,
    Sample,
    SeveralSources,
    chosen_sources,
    measuring,
    usage,
)
from speckit_memory.server.operations.operation import Option, View, operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speckit_memory.evaluation.statistics.report import Report
    from speckit_memory.server.operations.command_line import CommandCall


class Measurement(SeveralSources):
    pipelines: Pipelines = []
    run_file: Annotated[Path | None, Option("Write the rankings as TREC run lines.")] = None
    queries: Sample = None


@operation("tuning", "eval run", one_door=BY_USER, shared=("db", "set", "json", "verbose"))
def run_pipelines(call: CommandCall, params: Measurement) -> View:
    """Run every query of a dataset through each pipeline, report and compare.

    The dataset is indexed into a temporary store. With --own no dataset is needed: queries made of your own memories
    are asked, and nothing is recorded in their store.
    """
    sources = chosen_sources(params, call.common.db)
    if params.run_file is not None and len(sources) > 1:
        raise usage("--run-file takes one dataset")
    from speckit_memory.evaluation.running.run import run

    def measured() -> Iterator[Report]:
        for source in sources:
            with measuring(source.name) as progress:
                report = run(
                    source,
                    params.pipelines,
                    run_file=params.run_file,
                    queries=params.queries,
                    overrides=call.common.overrides,
                    progress=progress,
                )
            yield report.as_report()

    return View(reports=measured())


class Ablation(SeveralSources):
    queries: Sample = None


@operation("tuning", "eval ablate", one_door=BY_USER, shared=("db", "pipeline", "set", "json", "verbose"))
def ablate_steps(call: CommandCall, params: Ablation) -> View:
    """Measure what each step of a pipeline gains and costs, by leaving it out.

    Several datasets have equal weight in the verdict: pays, harms, no effect (within ±0.005), undecided, or not
    exercised, when leaving the step out changes no metric of any query.
    """
    from speckit_memory.evaluation.tuning.ablation import ablate

    with measuring("ablate") as progress:
        report = ablate(
            chosen_sources(params, call.common.db),
            call.config.pipeline,
            queries=params.queries,
            overrides=call.common.overrides,
            progress=progress,
        )
    return View(reports=[report.as_report()])


class BaselineComparison(OneSource):
    queries: Sample = None
    no_keep: NoKeep = False


@operation("tuning", "eval baseline", one_door=BY_USER, shared=("db", "pipeline", "set", "json", "verbose"))
def compare_with_baseline(call: CommandCall, params: BaselineComparison) -> View:
    """Compare a pipeline with BM25 alone, and say how much more effort is due.

    The decision rests on the share of the pipeline's MRR@5 that BM25 reaches: 80 % or more pause, 50 to 80 % proceed,
    less full effort. The report says so when the queries are too few to decide.
    """
    from speckit_memory.evaluation.comparing.baseline import baseline

    (source,) = chosen_sources(params, call.common.db)
    with measuring(source.name) as progress:
        found = baseline(
            source,
            call.common.pipeline,
            store=None if params.no_keep else call.config.db,
            queries=params.queries,
            overrides=call.common.overrides,
            progress=progress,
        )
    return View(reports=[found.as_report()])


class SensitivityAnalysis(OneSource):
    step: Annotated[str, Option("The step whose k is varied, where a pipeline fuses by rank more than once.")] = ""
    parameter: Annotated[
        str, Option("The number to vary instead of the k of the rank fusion.", metavar="STEP.PARAM[.KEY]")
    ] = ""
    values: Annotated[str, Option("The values to try.", metavar="N,N,…")] = "20,40,60,80,100"
    queries: Sample = None


@operation("tuning", "eval sensitivity", one_door=BY_USER, shared=("db", "pipeline", "set", "json", "verbose"))
def vary_number(call: CommandCall, params: SensitivityAnalysis) -> View:
    """Measure a pipeline with several values of one number.

    The report shows how far answers change, and what that gains or costs. Without --parameter the number is the k of
    reciprocal rank fusion. A pipeline without one lists the numbers that it has.
    """
    from speckit_memory.evaluation.comparing.sensitivity import sensitivity

    values = _numbers(params.values)
    (source,) = chosen_sources(params, call.common.db)
    with measuring(source.name) as progress:
        found = sensitivity(
            source,
            call.common.pipeline,
            parameter=params.parameter,
            step=params.step,
            values=values,
            queries=params.queries,
            overrides=call.common.overrides,
            progress=progress,
        )
    return View(reports=[found.as_report()])


def _numbers(text: str) -> tuple[float, ...]:
    """Parses comma-separated numbers; the error lists all parts that are not numbers."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not _is_number(part)]
    if wrong:
        told = ", ".join(f"'{part}' (the {parts.index(part) + 1}. of {len(parts)})" for part in dict.fromkeys(wrong))
        no = "is not a finite number" if len(wrong) == 1 else "are not finite numbers"
        message = f"{told} {no}; accepted are numbers such as 20,40,60"
        raise click.BadParameter(message, click.get_current_context(), param_hint="'--values'")
    return tuple(float(part) for part in parts)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
