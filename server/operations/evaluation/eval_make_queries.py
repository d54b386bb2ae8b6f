"""`eval make-queries`: makes datasets with queries of the kinds that people type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.server.console.arguments.options import DatasetPath
from speckit_memory.server.operations.evaluation.sources import BY_USER, Count, Seed
from speckit_memory.server.operations.fields import Flag
from speckit_memory.server.operations.operation import Option, Parameters, View, operation

if TYPE_CHECKING:
    from speckit_memory.server.operations.command_line import CommandCall

Kind = Literal[tuple(KINDS)]  # type: ignore[valid-type]  # the keys are known when the module is imported


class QueryMaking(Parameters):
    dataset: Annotated[
        Path,
        Option(
            "A dataset in the BEIR layout, only its documents are needed; 'bundled' is the one that ships.",
            metavar="DIR",
            type=DatasetPath(),
        ),
    ]
    out: Annotated[Path, Option("The folder to write.", metavar="DIR")]
    kinds: Annotated[
        list[Kind],  # type: ignore[valid-type]  # an alias made at run time
        Option("The kind of queries, else all. Several kinds are written to a folder each.", command="--kind"),
    ] = []
    queries: Annotated[Count, Option("Number of queries of each kind.")] = 200
    scope: Annotated[
        Literal["auto", "corpus", "folder"],
        Option("Ask about all documents or about those of one folder; auto does as the dataset's own queries do."),
    ] = "auto"
    seed: Seed = 20
    force: Annotated[Flag, Option("Overwrite the dataset in the folder.")] = False


@operation("tuning", "eval make-queries", one_door=BY_USER, shared=("json", "verbose"))
def make_dataset(call: CommandCall, params: QueryMaking) -> View:
    """Make queries of the kinds that people type from the documents of a dataset.

    Words, pairs of words, names, identifiers, phrases, misspelt words, titles, pasted paragraphs, stack traces and
    others: each is known to occur in some documents and in no others. Authors, dates and statuses are those that
    documents declare. Writes datasets for `eval run`. Exits with 1 when not one query can be made of the documents.
    """
    from speckit_memory.evaluation.made_queries.run import make_queries

    with call.progress("make-queries") as progress:
        report = make_queries(
            params.dataset,
            params.out,
            params.kinds,
            queries=params.queries,
            seed=params.seed,
            scope=params.scope,
            force=params.force,
            progress=lambda kind, done, total: progress(done, total, kind),
        )
    return View(reports=[report.as_report()])
