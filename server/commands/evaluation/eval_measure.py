"""`eval run`, `ablate`, `baseline` and `sensitivity`: measure pipelines on a dataset."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.server.console.arguments.options import Common, NamedPath, no_keep_option, shared_options
from speckit_memory.server.console.arguments.sources import pipelines_option, source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report, show_reports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.evaluation.statistics.report import Report


@click.command("run")
@pipelines_option("A pipeline to measure; may be repeated to compare. Else the one that a search would use.")
@click.option("--run-file", type=NamedPath(), help="Write the rankings as TREC run lines.")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@shared_options("db", "set", "json", "verbose")
@source_options(several=True)
def run_command(
    common: Common,
    sources: tuple[GroundSource, ...],
    pipelines: tuple[str, ...],
    run_file: Path | None,
    queries: int | None,
) -> None:
    """Run every query of a dataset through each pipeline, report and compare.

    The dataset is indexed into a temporary store. With --own no dataset is needed: queries made of your own memories
    are asked, and nothing is recorded in their store.
    """
    if run_file is not None and len(sources) > 1:
        raise click.UsageError("--run-file takes one dataset", click.get_current_context())
    from speckit_memory.evaluation.running.run import run

    def measured() -> Iterator[Report]:
        for source in sources:
            with ProgressReporter(source.name) as bar:
                report = run(
                    source,
                    pipelines,
                    run_file=run_file,
                    queries=queries,
                    overrides=common.overrides,
                    progress=lambda now: bar.update(now.done, now.total, now.phase),
                )
            yield report.as_report()

    show_reports(measured(), common)


@click.command("ablate")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries of each dataset.")
@shared_options("db", "pipeline", "set", "json", "verbose")
@source_options(several=True)
def ablate_command(common: Common, sources: tuple[GroundSource, ...], queries: int | None) -> None:
    """Measure what each step of a pipeline gains and costs, by leaving it out.

    Several datasets have equal weight in the verdict: pays, harms, no effect (within ±0.005), undecided, or not
    exercised, when leaving the step out changes no metric of any query.
    """
    from speckit_memory.evaluation.tuning.ablation import ablate

    with ProgressReporter("ablate") as bar:
        report = ablate(
            sources,
            settings(common.db, common.pipeline).pipeline,
            queries=queries,
            overrides=common.overrides,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    show_report(report.as_report(), common)


@click.command("baseline")
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@no_keep_option
@shared_options("db", "pipeline", "set", "json", "verbose")
@source_options(several=False)
def baseline_command(common: Common, sources: tuple[GroundSource, ...], queries: int | None, no_keep: bool) -> None:
    """Compare a pipeline with BM25 alone, and say how much more effort is due.

    The decision rests on the share of the pipeline's MRR@5 that BM25 reaches: 80 % or more pause, 50 to 80 % proceed,
    less full effort. The report says so when the queries are too few to decide.
    """
    from speckit_memory.evaluation.comparing.baseline import baseline

    (source,) = sources
    with ProgressReporter(source.name) as bar:
        found = baseline(
            source,
            common.pipeline,
            store=None if no_keep else settings(common.db).db,
            queries=queries,
            overrides=common.overrides,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    show_report(found.as_report(), common)


def _numbers(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[float, ...]:
    """Parses comma-separated numbers; the error lists all parts that are not numbers."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not _is_number(part)]
    if wrong:
        told = ", ".join(f"'{part}' (the {parts.index(part) + 1}. of {len(parts)})" for part in dict.fromkeys(wrong))
        no = "is not a finite number" if len(wrong) == 1 else "are not finite numbers"
        raise click.BadParameter(f"{told} {no}; accepted are numbers such as 20,40,60")
    return tuple(float(part) for part in parts)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@click.command("sensitivity")
@click.option(
    "--step",
    default="",
    metavar="STEP",
    help="The step whose k is varied, where a pipeline fuses by rank more than once.",
)
@click.option(
    "--parameter",
    default="",
    metavar="STEP.PARAM[.KEY]",
    help="The number to vary instead of the k of the rank fusion.",
)
@click.option(
    "--values",
    callback=_numbers,
    default="20,40,60,80,100",
    show_default=True,
    metavar="N,N,…",
    help="The values to try.",
)
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@shared_options("db", "pipeline", "set", "json", "verbose")
@source_options(several=False)
def sensitivity_command(
    common: Common,
    sources: tuple[GroundSource, ...],
    step: str,
    parameter: str,
    values: tuple[float, ...],
    queries: int | None,
) -> None:
    """Measure a pipeline with several values of one number.

    The report shows how far answers change, and what that gains or costs. Without --parameter the number is the k of
    reciprocal rank fusion. A pipeline without one lists the numbers that it has.
    """
    from speckit_memory.evaluation.comparing.sensitivity import sensitivity

    (source,) = sources
    with ProgressReporter(source.name) as bar:
        found = sensitivity(
            source,
            common.pipeline,
            parameter=parameter,
            step=step,
            values=values,
            queries=queries,
            overrides=common.overrides,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    show_report(found.as_report(), common)
