"""`eval sensitivity`: measures how much one number of a pipeline matters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.sources import source_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.evaluation.ground_truth.ground import GroundSource


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
def command(
    common: Common,
    sources: tuple[GroundSource, ...],
    step: str,
    parameter: str,
    values: tuple[float, ...],
    queries: int | None,
) -> None:
    """Measure a pipeline with several values of one number.

    The report shows how far answers change, and what that gains or costs. Without --parameter the number is the k of
    reciprocal rank fusion. A pipeline without one lists the numbers that it has.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        sources: Where queries and judgements come from.
        step: Step whose k is varied; "" for the only rank fusion.
        parameter: Number to vary instead of the k.
        values: Values to try.
        queries: Size of a sample of the queries; None for all.
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
