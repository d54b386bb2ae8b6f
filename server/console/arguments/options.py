"""The options that commands share, accepted after the name of the command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from speckit_memory.config.files.paths import named_path, working_folder
from speckit_memory.server.console import completion
from speckit_memory.server.console.output import wrapped

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

Command = Callable[..., int | None]
Option = Literal["db", "pipeline", "set", "json"]


@dataclass(frozen=True, slots=True)
class Common:
    """The values of the shared options."""

    db: Path | None = None
    pipeline: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    as_json: bool = False

    def open(self, *, create: bool = True, root: Path | None = None, stand_in: bool = False) -> Memory:
        """Opens the store that the options name; `stand_in` as for `Memory.open`. Raises SpeckitError when it cannot
        be."""
        from speckit_memory.engine import Memory

        return Memory.open(
            self.db, self.pipeline, root=root, create=create, overrides=self.overrides, stand_in=stand_in
        )


def shared(*wanted: Option) -> Callable[[Command], Command]:
    """Adds the shared options `wanted` to a command, which receives them as its first argument, a `Common`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_common(**values: Any) -> int | None:
            common = Common(
                db=values.pop("db", None),
                pipeline=values.pop("pipeline", None),
                overrides=values.pop("overrides", None) or {},
                as_json=values.pop("as_json", False),
            )
            return command(common, **values)

        decorated: Command = with_common
        for name in reversed(wanted):
            decorated = _OPTIONS[name](decorated)
        return decorated

    return decorate


def _parse_overrides(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    overrides = {}
    for value in values:
        path, equals, text = value.partition("=")
        step, dot, parameter = path.partition(".")
        if not (equals and dot and step and parameter):
            raise click.BadParameter(f"'{value}' is not of the form STEP.PARAM=VALUE")
        if not text.strip():
            raise click.BadParameter(f"'{value}' gives no value; write null or '' if that is meant")
        overrides[path] = text
    return overrides


_OPTIONS: dict[Option, Callable[[Command], Command]] = {
    "db": click.option(
        "--db",
        type=click.Path(dir_okay=True, path_type=Path),
        metavar="FILE",
        help="The store; else SPECKIT_DB, else .speckit/memory.db in the workspace root.",
    ),
    "pipeline": click.option(
        "--pipeline",
        metavar="FILE|PRESET",
        shell_complete=completion.pipelines,
        help="The pipeline; else SPECKIT_PIPELINE, else .speckit/pipeline.yaml, else the shipped default.",
    ),
    "set": click.option(
        "--set",
        "overrides",
        multiple=True,
        callback=_parse_overrides,
        metavar="STEP.PARAM[.KEY]=VALUE",
        shell_complete=completion.settings,
        help="Change one value for this call, or one key of a mapping (z_score.weights.bm25=0.9); may be repeated.",
    ),
    "json": click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on standard output and nothing else."
    ),
}


def _joined(context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> str:
    # where the locale knows no UTF-8, Python hands over the bytes of other letters as surrogates
    query = " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    if len(words) > 1 and not context.resilient_parsing:
        note = f"searching for: {query} (quote a query, so that the shell leaves ? * & and quotation marks alone)"
        click.echo(wrapped(note, stream=sys.stderr), err=True)
    return query


query_argument = click.argument("query", nargs=-1, required=True, metavar="QUERY", callback=_joined)
"""A query, quoted or not: a command receives `query: str`, several words joined by blanks."""


class NamedPath(click.Path):
    """The type of options that name a file or folder, which need not be there: a `Path`. Refuses with E014."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A path that can be one; while a shell completes a line, nothing is refused."""
        if ctx is not None and ctx.resilient_parsing:
            return Path(value)
        path = named_path(value, param.opts[0] if param else "the path")
        if not path.is_absolute():
            working_folder()
        return path


class DatasetPath(NamedPath):
    """The type of options that name a dataset: its folder, or the name of the one that ships."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The folder. "bundled" always means the dataset that ships; a folder of that name is "./bundled"."""
        from speckit_memory.evaluation import bundled

        return bundled.FOLDER if value == bundled.NAME else super().convert(value, param, ctx)


no_keep_option = click.option(
    "--no-keep", is_flag=True, help="Leave nothing in the evaluation database beside the store."
)
"""What the commands that keep their result take: a command receives `no_keep: bool`."""
