"""`eval make-queries`: makes datasets with queries of the kinds that people type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.server.console.arguments.options import Common, DatasetPath, NamedPath, shared_options
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from speckit_memory.evaluation.made_queries.run import Scope


@click.command("make-queries")
@click.option(
    "--dataset",
    type=DatasetPath(),
    required=True,
    metavar="DIR",
    help="A dataset in the BEIR layout, only its documents are needed; 'bundled' is the one that ships.",
)
@click.option("--out", type=NamedPath(), required=True, metavar="DIR", help="The folder to write.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(list(KINDS)),
    multiple=True,
    help="The kind of queries; may be repeated. Else all. Several kinds are written to a folder each.",
)
@click.option(
    "--queries", type=click.IntRange(min=1), default=200, show_default=True, help="Number of queries of each kind."
)
@click.option(
    "--scope",
    type=click.Choice(["auto", "corpus", "folder"]),
    default="auto",
    show_default=True,
    help="Ask about all documents or about those of one folder; auto does as the dataset's own queries do.",
)
@click.option("--seed", type=click.IntRange(min=0), default=20, show_default=True, help="Seeds all that is random.")
@click.option("--force", is_flag=True, help="Overwrite the dataset in the folder.")
@shared_options("json", "verbose")
def command(
    common: Common,
    dataset: Path,
    out: Path,
    kinds: tuple[str, ...],
    queries: int,
    scope: Scope,
    seed: int,
    force: bool,
) -> None:
    """Make queries of the kinds that people type from the documents of a dataset.

    Words, pairs of words, names, identifiers, phrases, misspelt words, titles, pasted paragraphs, stack traces and
    others: each is known to occur in some documents and in no others. Authors, dates and statuses are those that
    documents declare. Writes datasets for `eval run`. Exits with 1 when not one query can be made of the documents.
    """
    from speckit_memory.evaluation.made_queries.run import make_queries

    with ProgressReporter("make-queries") as bar:
        report = make_queries(
            dataset,
            out,
            kinds,
            queries=queries,
            seed=seed,
            scope=scope,
            force=force,
            progress=lambda kind, done, total: bar.update(done, total, kind),
        )
    show_report(report.as_report(), common)
