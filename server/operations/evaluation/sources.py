"""What measuring commands share: datasets or the user's own memories, pipelines, a sample, progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import Field

from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import DatasetPath
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.operations.fields import Flag
from speckit_memory.server.operations.operation import Option, Parameters

if TYPE_CHECKING:
    from speckit_memory.evaluation.ground_truth.ground import GroundSource
    from speckit_memory.evaluation.measuring.measure import OnMeasured

BY_USER = "people measure pipelines, which takes minutes"
PIPELINE = "FILE|PRESET"
Count = Annotated[int, Field(strict=True, ge=1)]
Sample = Annotated[Count | None, Option("Only a sample of this many queries.")]
NoKeep = Annotated[Flag, Option("Store nothing in the evaluation database.")]
Seed = Annotated[int, Field(strict=True, ge=0), Option("Seed of all random choices.")]
Since = Annotated[
    str | None, Option("Only what was recorded since then: 24h, 7d, 2026-01-31 or 2026-01-31T09:00.", metavar="WHEN")
]
Pipelines = Annotated[
    list[str],
    Option(
        "A pipeline, else the one that a search would use.",
        command="--pipeline",
        metavar=PIPELINE,
        complete=completion.pipelines,
    ),
]


class OwnMemories(Parameters):
    own: Annotated[
        Flag,
        Option("Measure on your own memories, with queries made from their titles, headings, triggers and words."),
    ] = False
    from_use: Annotated[
        Flag, Option("Measure on your own memories, with recorded queries and the use of their answers.")
    ] = False


class OneSource(OwnMemories):
    dataset: Annotated[
        Path | None,
        Option("A dataset in the BEIR layout, or 'bundled', the one that ships.", metavar="DIR", type=DatasetPath()),
    ] = None

    @property
    def datasets(self) -> list[Path]:
        """The dataset, if there is one."""
        return [] if self.dataset is None else [self.dataset]


class SeveralSources(OwnMemories):
    datasets: Annotated[
        list[Path],
        Option(
            "A dataset in the BEIR layout, or 'bundled', the one that ships.",
            command="--dataset",
            metavar="DIR",
            type=DatasetPath(),
        ),
    ] = []


def chosen_sources(
    params: OneSource | SeveralSources, db: Path | str | None, *, required: bool = True
) -> tuple[GroundSource, ...]:
    """The datasets, or the user's own memories in the store `db`. Raises UsageError for both, and for a required choice
    that is not made."""
    own = params.own or params.from_use
    if own and params.datasets:
        raise usage("--own measures on your own memories; omit --dataset")
    if own:
        from speckit_memory.evaluation.ground_truth.own import OwnSource

        return (OwnSource(db, params.from_use),)
    if required and not params.datasets:
        raise usage("give --dataset DIR, or --own to measure on your own memories")
    from speckit_memory.evaluation.ground_truth.ground import DatasetSource

    return tuple(map(DatasetSource, params.datasets))


def usage(message: str) -> click.UsageError:
    """The error about options that do not go together."""
    return click.UsageError(message, click.get_current_context())


@contextmanager
def measuring(label: str) -> Iterator[OnMeasured]:
    """Shows the progress of an evaluation under a label."""
    with ProgressReporter(label) as bar:
        yield lambda now: bar.update(now.done, now.total, now.phase)
