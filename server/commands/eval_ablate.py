"""`eval ablate`: what each step of a pipeline is worth."""

from __future__ import annotations

from pathlib import Path

import click

from config.settings import settings
from server.options import Common, shared
from server.output import print_json
from server.progress import ProgressReporter


@click.command("ablate")
@click.option(
    "--dataset", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A dataset in the BEIR layout."
)
@click.option("--queries", type=click.IntRange(min=1), help="Only a sample of this many queries.")
@shared("pipeline", "set", "json")
def command(common: Common, dataset: Path, queries: int | None) -> None:
    """Measure a pipeline against itself without each step in turn: what the step gains, and what it costs."""
    from evaluation.ablation import ablate

    with ProgressReporter(dataset.name) as bar:
        report = ablate(
            dataset,
            settings(pipeline=common.pipeline).pipeline,
            queries=queries,
            overrides=common.overrides,
            progress=lambda now: bar.update(now.done, now.total, now.phase),
        )
    if common.as_json:
        print_json(report.as_json())
    else:
        click.echo(report.as_text())
