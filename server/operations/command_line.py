"""Derives the commands from the operations: options, arguments, help and output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import click
from annotated_types import Ge, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.argument_problems import FAR, problems_of
from speckit_memory.server.console.arguments.options import Common, NamedPath, join_words, shared_options
from speckit_memory.server.console.arguments.typed_text import decode_option
from speckit_memory.server.console.failures import show_problems
from speckit_memory.server.console.markdown import plain_value
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, printable, table, table_rows, wrap_text
from speckit_memory.server.operations.operation import OPERATIONS, Operation, Option, Parameters, View
from speckit_memory.server.reports.terminal import show_reports

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.server.operations.operation import Row


class CommandCall:
    """A call from the command line. The store that it opens is closed when the call ends."""

    workspace = None

    def __init__(self, common: Common, opened: ExitStack) -> None:
        self.common = common
        self._opened = opened
        self._memory: Memory | None = None

    @property
    def config(self) -> Settings:
        """The settings in force."""
        return settings(self.common.db, self.common.pipeline)

    def memory(self, *, create: bool = False) -> Memory:
        """The open memory."""
        if self._memory is None:
            memory = self.common.open() if create else existing_store(self.common)
            self._memory = self._opened.enter_context(memory)
        return self._memory

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[..., None]]:
        """Shows a bar on standard error; the function takes the phase as well."""
        from speckit_memory.server.console.progress import ProgressReporter

        with ProgressReporter(label) as bar:
            yield bar.update

    def way(self, command: str, tool: str) -> str:  # noqa: ARG002 -- the other door's
        """The wording for the command line."""
        return command


def load_command(command: str, module: str) -> click.Command:
    """The command that the words call, declared in this module of `server`."""
    import_module(f"speckit_memory.server.{module}")
    return derive_command(next(operation for operation in OPERATIONS if operation.command == command))


def derive_command(operation: Operation) -> click.Command:
    """Derives the command of an operation."""

    def run(common: Common, **values: Any) -> int:
        params = _validated(operation, values)
        with ExitStack() as opened:
            view: View | int = operation.function(CommandCall(common, opened), params)
            if isinstance(view, int):
                return view
            if view.after:
                view.after(view.data[view.rows])
        present(view, common)
        return view.status

    decorated = shared_options(*operation.shared)(run)
    for name, field, option in reversed(operation.options()):
        if option.command is not None:
            decorated = _parameter(name, field, option)(decorated)
    return click.command(operation.command.rpartition(" ")[2], help=operation.help)(decorated)


def present(view: View, common: Common) -> None:
    """Prints a view as the options ask for it: for a reader, or as its JSON document."""
    for remark in view.remarks:
        click.echo(wrap_text(f"remark: {remark}", stream=sys.stderr), err=True)
    if view.reports:
        show_reports(view.reports, common)
    elif not common.as_json:
        show(view)
    elif view.problems:
        print_json(SpeckitError.of(view.problems).as_json())
    else:
        print_json(view.data)


def show(view: View) -> None:
    """Prints a view; only its text if it has one, which may be piped into a file."""
    stream = sys.stdout if view.text is None else sys.stderr

    def say(text: str, **style: Any) -> None:
        click.echo(wrap_text(text, stream=stream, **style), file=stream)

    show_problems(view.problems, stream)
    rows: list[Row] = view.data[view.rows] if view.rows else []
    if rows and view.heads:
        _show_table(view, rows)
    if view.summary:
        say(view.summary)
    shown = {name: plain_value(value) for name, value in view.facts.items() if value not in ("", None, [], {})}
    for line in table_rows([tuple(map(_cell, fact)) for fact in shown.items()]):
        click.echo(line, file=stream)
    for row in rows if not view.heads else ():
        head, *texts = view.cells(row)
        first, *more = head.split("\n")
        click.echo(wrap_text(" · ".join(filter(None, [first, *texts])), indent="    ", first="  "))
        for line in more:
            click.echo(wrap_text(line, indent="    "))
    for hint in view.hints:
        say(hint, dim=True)
    if view.text is not None:
        click.echo(view.text, nl=not view.text.endswith("\n"))


def _show_table(view: View, rows: list[Row]) -> None:
    columns = list(zip(view.heads, *(map(_cell, view.cells(row)) for row in rows), strict=True))
    filled = [column for column in columns if any(column[1:])]
    figures = [place for place, column in enumerate(filled) if all(map(_is_figure, column[1:]))]
    click.echo(table(list(zip(*filled, strict=True)), right=figures, headed=True))


def _cell(text: str) -> str:
    """A text on one line, which cannot control the terminal."""
    return " ".join(printable(text).split())


def _is_figure(cell: str) -> bool:
    return not cell or cell.replace(",", "").replace(".", "", 1).isdigit()


def _validated(operation: Operation, values: dict[str, Any]) -> Parameters:
    """The parameters of a command line. Raises SpeckitError with all problems."""
    given = {name: value for name, value in values.items() if value is not None and value != ()}
    try:
        return operation.params.model_validate(given)
    except ValidationError as error:
        spelt = {name: _spelling(name, option) for name, _, option in operation.options()}
        details = [
            {**detail, "loc": (spelt.get(str(detail["loc"][0]), ""), *detail["loc"][1:])}
            for detail in error.errors(include_url=False, include_context=False)
        ]
        schema = operation.params.model_json_schema()
        named = {spelt[name]: form for name, form in schema["properties"].items()}
        raise SpeckitError.of(problems_of(operation.command, details, {"properties": named})) from None


def _spelling(name: str, option: Option) -> str:
    return name.upper() if option.argument else (option.command or f"--{name.replace('_', '-')}").partition("/")[0]


def _parameter(name: str, field: FieldInfo, option: Option) -> Callable[[Any], Any]:
    """The option or argument of a field."""
    kind, bounds, several = _form(field)
    settings: dict[str, Any] = {"type": option.type or _click_type(kind, bounds), "shell_complete": option.complete}
    if kind is str and option.type is None:
        settings["callback"] = decode_option
    if kind is dict:
        settings["callback"] = _json_object
    if option.argument:
        metavar = option.metavar or name.upper()
        if option.joined:
            return click.argument(name, nargs=-1, required=True, metavar=metavar, callback=join_words)
        if not field.is_required():
            metavar = f"[{metavar}]"
        settings |= {"required": field.is_required(), "metavar": f"{metavar}..." if several else metavar}
        return click.argument(name, nargs=-1 if several else 1, **settings)
    settings |= {
        "help": option.help,
        "metavar": option.metavar or (name.upper() if kind is str else None),
        "required": field.is_required(),
    }
    if option.flag:
        settings = {"help": option.help, "flag_value": option.flag, "default": field.default}
    elif kind is bool:
        del settings["type"], settings["metavar"]
        settings |= {"is_flag": True, "default": None if field.is_required() else field.default}
    elif several:
        settings |= {"multiple": True, "help": f"{option.help.removesuffix('.')}; may be repeated."}
    elif not field.is_required() and field.default not in (None, ""):
        settings |= {"default": field.default, "show_default": True}
    return click.option(option.command or f"--{name.replace('_', '-')}", name, **settings)


def _form(field: FieldInfo) -> tuple[Any, list[Any], bool]:
    """The type of a field or of the items of its list, the bounds, and whether it is a list."""
    kind, bounds = _unwrapped(field.annotation)
    bounds += field.metadata
    if get_origin(kind) is list:
        return (*_unwrapped(get_args(kind)[0]), True)
    return kind, bounds, False


def _unwrapped(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without None and without metadata, and the metadata; Any for an id or key."""
    metadata: list[Any] = []
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *further = get_args(annotation)
            for each in further:
                metadata += each.metadata if isinstance(each, FieldInfo) else [each]
        elif get_origin(annotation) in (Union, UnionType):
            options = [each for each in get_args(annotation) if each is not type(None)]
            annotation = options[0] if len(options) == 1 else Any
        else:
            return get_origin(annotation) if get_origin(annotation) is dict else annotation, metadata


def _click_type(kind: Any, bounds: list[Any]) -> Any:
    if get_origin(kind) is Literal:
        return Word(get_args(kind))
    if kind in (int, float):
        low = next((bound.ge for bound in bounds if isinstance(bound, Ge)), None)
        high = next((bound.le for bound in bounds if isinstance(bound, Le)), None)
        return Number(kind, low, high)
    return NamedPath() if kind is Path else str


class Word(click.Choice[str]):
    """One of several words. The model of the parameters refuses others, as it does for a tool."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002 -- click's signature
        """Returns the word."""
        return value


class Number(click.ParamType[Any]):
    """A number; a whole one as tables show it, 3 or #3. The model of the parameters refuses what is none."""

    def __init__(self, kind: type[int] | type[float], low: Any, high: Any) -> None:
        """`low` and `high` are the bounds for the help; one that is as good as none is not shown."""
        self._kind = kind
        far = high is None or high >= FAR
        shown = {(False, False): f"{low}-{high}", (False, True): f"{low}-…"}.get((low is None, far))
        self.name = shown or ("integer" if kind is int else "number")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002 -- click's signature
        """Returns the number, or the text that is none."""
        try:
            # shells treat an unquoted # at the start of a word as a comment, so both forms must work
            return self._kind(str(value).removeprefix("#"))
        except (ValueError, OverflowError):
            return value


def _json_object(_context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        what = f'{parameter.opts[0]} is not a JSON object such as {{"why": "before the import"}}'
        raise SpeckitError("E030", printable(what))
    return found
