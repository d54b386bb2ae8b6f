"""Options for the data of measuring commands: datasets, or the user's own memories."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import Command, DatasetPath

if TYPE_CHECKING:
    from speckit_memory.evaluation.ground_truth.ground import GroundSource


def pipelines_option(help_text: str) -> Callable[[Command], Command]:
    """Adds --pipeline, repeatable; the command receives `pipelines`, a tuple."""
    return click.option(
        "--pipeline",
        "pipelines",
        multiple=True,
        metavar="FILE|PRESET",
        shell_complete=completion.pipelines,
        help=help_text,
    )


def source_options(*, several: bool, or_else: str = "", or_else_bundled: bool = False) -> Callable[[Command], Command]:
    """Adds --dataset (repeatable with `several`), --own and --from-use; the command receives `sources`, a tuple.

    One of them is required, unless the option named by `or_else` is given: then the tuple may be empty. With
    `or_else_bundled`, the shipped dataset is the default.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_sources(*given: Any, **values: Any) -> int | None:
            named = values.pop("datasets")
            datasets = named if several else tuple(folder for folder in (named,) if folder is not None)
            own, from_use = values.pop("own"), values.pop("from_use")
            # the first argument is `Common` if the command has shared options
            db = given[0].db if given else None
            sources = _sources(datasets, own or from_use, from_use, db)
            if not sources and or_else_bundled:
                from speckit_memory.evaluation import bundled

                sources = _sources((bundled.FOLDER,), own=False, from_use=False, db=None)
            if not sources and not (or_else and values.get(or_else)):
                raise click.UsageError("give --dataset DIR, or --own to measure on your own memories", _context())
            return command(*given, sources=sources, **values)

        decorated: Command = with_sources
        for option in reversed(_options(several)):
            decorated = option(decorated)
        return decorated

    return decorate


def _options(several: bool) -> list[Callable[[Command], Command]]:
    more = "; may be repeated." if several else "."
    return [
        click.option(
            "--dataset",
            "datasets",
            type=DatasetPath(),
            multiple=several,
            metavar="DIR",
            help=f"A dataset in the BEIR layout, or 'bundled', the one that ships{more}",
        ),
        click.option(
            "--own",
            is_flag=True,
            help="Measure on your own memories, with queries made from their titles, headings, triggers and words.",
        ),
        click.option(
            "--from-use",
            is_flag=True,
            help="Measure on your own memories, with recorded queries and the use of their answers.",
        ),
    ]


def _sources(datasets: tuple[Any, ...], own: bool, from_use: bool, db: Any) -> tuple[GroundSource, ...]:
    if own and datasets:
        raise click.UsageError("--own measures on your own memories; omit --dataset", _context())
    if own:
        from speckit_memory.evaluation.ground_truth.own import OwnSource

        return (OwnSource(db, from_use),)
    if not datasets:
        return ()
    from speckit_memory.evaluation.ground_truth.ground import DatasetSource

    return tuple(DatasetSource(folder) for folder in datasets)


def _context() -> click.Context:
    return click.get_current_context()
