"""Options shared by commands, given after the name of the command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from speckit_memory.config.files.paths import named_path, working_folder
from speckit_memory.config.workspace.settings import PRINCIPAL_VARIABLE
from speckit_memory.config.workspace.store_address import is_address, require_address
from speckit_memory.errors import NotFoundError, SpeckitError, StoreError
from speckit_memory.errors.echo import plural
from speckit_memory.server.console import completion
from speckit_memory.server.console.output import wrap_text

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

Command = Callable[..., int | None]
Option = Literal["db", "pipeline", "set", "json", "verbose"]


@dataclass(frozen=True, slots=True)
class Common:
    """The values of the shared options; `runs_pipeline`: whether the command has options for a pipeline.

    `principal` acts in place of that of the environment; it is set for requests over HTTP.
    """

    db: Path | str | None = None
    pipeline: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    as_json: bool = False
    runs_pipeline: bool = True
    verbose: bool = False
    principal: str = ""

    @property
    def environ(self) -> dict[str, str] | None:
        """The environment with the principal; None for that of the process."""
        return {**os.environ, PRINCIPAL_VARIABLE: self.principal} if self.principal else None

    def open(self, *, create: bool = True, root: Path | None = None, stand_in: bool = False) -> Memory:
        """Opens the store that the options select; `stand_in` as for `Memory.open`. Raises SpeckitError.

        A broken pipeline is only a warning to a command that runs none.
        """
        from speckit_memory.engine import Memory

        opened = partial(
            Memory.open,
            self.db,
            self.pipeline,
            root=root,
            environ=self.environ,
            create=create,
            overrides=self.overrides,
        )
        try:
            return opened(stand_in=stand_in)
        except SpeckitError as error:
            if self.runs_pipeline or isinstance(error, StoreError | NotFoundError):
                raise
            memory = opened(stand_in=True)
            further = f", and {plural(len(error.problems) - 1, 'more problem')}" * (len(error.problems) > 1)
            warning = f"warning: {error.problems[0]}{further}; searches fail until it is corrected"
            click.echo(wrap_text(warning, stream=sys.stderr, fg="yellow"), err=True)
            return memory


def shared_options(*wanted: Option) -> Callable[[Command], Command]:
    """Adds the shared options `wanted` to a command, which receives them as its first argument, a `Common`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_common(**values: Any) -> int | None:
            common = Common(
                db=values.pop("db", None),
                pipeline=values.pop("pipeline", None),
                overrides=values.pop("overrides", None) or {},
                as_json=values.pop("as_json", False),
                verbose="verbose" in wanted and values.pop("verbose"),
                runs_pipeline=not {"pipeline", "set"}.isdisjoint(wanted),
            )
            return command(common, **values)

        decorated: Command = with_common
        for name in reversed(wanted):
            decorated = _OPTIONS[name](decorated)
        return decorated

    return decorate


class StoreName(click.Path):
    """Option type for a store: a `Path`, or the text of an address. Raises E030 and E057 for a bad address."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Converts to a path or checks an address."""
        if isinstance(value, str) and is_address(value):
            return require_address(value, "--db")
        return super().convert(value, param, ctx)


def _parse_overrides(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    overrides = {}
    for value in values:
        path, equals, text = value.partition("=")
        step, dot, parameter = path.partition(".")
        if not (equals and dot and step and parameter):
            raise click.BadParameter(f"'{value}' is not of the form STEP.PARAM=VALUE")
        if not text.strip():
            raise click.BadParameter(f"'{value}' gives no value; write null or '' for an empty one")
        overrides[path] = text
    return overrides


_OPTIONS: dict[Option, Callable[[Command], Command]] = {
    "db": click.option(
        "--db",
        type=StoreName(),
        metavar="FILE|URL",
        help="The store, a file or a PostgreSQL address; else SPECKIT_DB, else `store` in .speckit/config.yaml, else "
        ".speckit/memory.db in the workspace root.",
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
    "verbose": click.option("--verbose", "-v", is_flag=True, help="Show everything: figures, passages, reasons."),
}


def join_words(context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> str:
    """Joins the words of a query, quoted or not, by blanks."""
    # in a locale without UTF-8, Python passes other bytes as surrogates
    query = " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    if len(words) > 1 and not context.resilient_parsing:
        note = f"searching for: {query} (quote a query, so that the shell leaves ? * & and quotation marks alone)"
        click.echo(wrap_text(note, stream=sys.stderr), err=True)
    return query


class NamedPath(click.Path):
    """Option type for a file or folder that need not exist: a `Path`. Raises E014 for an impossible path."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Converts and checks the path; during shell completion nothing is checked."""
        if ctx is not None and ctx.resilient_parsing:
            return Path(value)
        path = named_path(value, param.opts[0] if param else "the path")
        if not path.is_absolute():
            working_folder()
        return path


class DatasetPath(NamedPath):
    """Option type for a dataset: its folder, or "bundled" for the shipped one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Converts to the dataset's folder. "bundled" always means the shipped one; write "./bundled" for a folder."""
        from speckit_memory.evaluation import bundled

        return bundled.FOLDER if value == bundled.NAME else super().convert(value, param, ctx)
