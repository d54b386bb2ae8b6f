"""Declares operations: one function and the model of its parameters, offered at the command line and over MCP."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from speckit_memory.server.calls.unused_parameters import Rule

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from speckit_memory.config.workspace.settings import Settings
    from speckit_memory.engine import Memory
    from speckit_memory.errors import Problem
    from speckit_memory.evaluation.statistics.report import Report
    from speckit_memory.server.console.arguments.options import Common
    from speckit_memory.server.console.arguments.options import Option as SharedOption
    from speckit_memory.server.workspace.workspace import Workspace

Group = Literal["daily", "set-up", "tuning", "administration"]
"""The heading of a command in the help of the whole command line."""


@dataclass(frozen=True, slots=True)
class Option:
    """How a parameter is offered; stands in the annotation of its field.

    Attributes:
        help: Description at the command line.
        tool: Name of the tool's parameter, by default that of the field in camel case; None if the tool has none.
        brief: Description in the tool's schema; "" for that of the field's type, if any.
        command: Spelling of the option, by default `--` and the name of the field; None if the command has none.
        metavar: Placeholder of the value in the help, by default the name of the field.
        argument: Whether the command takes it by position instead of as an option.
        joined: Whether the argument may be several words, which are joined by blanks.
        flag: Value that the option stands for, if it takes none.
        advanced: Whether the tool's definition in the profile `core` omits it.
        type: Type of the click library, where the annotation does not tell it.
        complete: Completes the value in a shell.
        required: Whether the tool requires it, although the field has a default for the command.
    """

    help: str
    tool: str | None = ""
    brief: str = ""
    command: str | None = ""
    metavar: str | None = None
    argument: bool = False
    joined: bool = False
    flag: str = ""
    advanced: bool = False
    type: Any = None
    complete: Callable[..., Any] | None = None
    required: bool = False


class Parameters(BaseModel):
    """The parameters of an operation. Each field has an `Option` in its annotation."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


class Call(Protocol):
    """One call of an operation, at either door."""

    common: Common | None
    """The shared options of the command; None for a tool."""
    workspace: Workspace | None
    """The workspace of the tool; None for a command."""

    @property
    def config(self) -> Settings:
        """The settings in force."""

    def memory(self, *, create: bool = False) -> Memory:
        """The open memory; `create` creates a missing store. Raises E010 if there is no store."""

    def progress(self, label: str) -> AbstractContextManager[Callable[[int, int], None]]:
        """Shows progress under a label: the function takes the work done and all work."""

    def way(self, command: str, tool: str) -> str:
        """The wording for this door."""


Row = dict[str, Any]
Cells = Callable[[Row], Sequence[str]]


def no_cells(row: Row) -> Sequence[str]:
    """Renders no row; for views without rows."""
    raise NotImplementedError(f"a view of rows with {', '.join(row)} has no cells")


@dataclass(frozen=True, slots=True)
class View:
    """The result of an operation.

    Attributes:
        summary: One sentence.
        data: The result as plain data: the JSON document of the command, and `data` of the tool's answer.
        facts: Names and values; empty values are not shown.
        rows: Name of the list in `data` that is shown row by row; "" for none.
        cells: Returns the cells of a row; empty cells are not shown.
        heads: Headings of the cells, which make a table of them; () for one line per row.
        text: A text to print as it is: at the command line everything else goes to standard error.
        hints: Sentences on what to do next.
        remarks: Sentences that the command prints to standard error.
        problems: What was found to be wrong; the JSON document of the command is then that of an error.
        status: Exit status of the command.
        reply: Further fields of the tool's `Reply`, such as its budget.
        reports: What the command prints instead, each as soon as there is one, with their documents as its JSON.
        after: Called with the rows that were sent.
    """

    summary: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: str = ""
    cells: Cells = no_cells
    heads: tuple[str, ...] = ()
    text: str | None = None
    hints: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    status: int = 0
    reply: dict[str, Any] = field(default_factory=dict)
    reports: Iterable[Report] = ()
    after: Callable[[Sequence[Row]], None] | None = None


Run = TypeVar("Run", bound=Callable[[Any, Any], View | int])
"""A function that takes a `Call`, or a `CommandCall` if there is no tool, and parameters. A command that presents its
result by hand returns its exit status."""


@dataclass(frozen=True, slots=True)
class Tool:
    """How an operation is offered over MCP.

    Attributes:
        name: Name of the tool.
        title: Name for users.
        brief: Description for models.
        budget: Token budget of an answer.
        lengthy: Whether a call may take long.
        here: Whether the server's own process must answer, although the tool only reads.
        cached: Whether answers may be cached.
        core: Whether the profile `core` has the tool.
        unused: Finds parameters without effect.
        equal: Returns a key for parameter values; concurrent calls with equal keys share one answer.
    """

    name: str
    title: str
    brief: str
    budget: int = 1000
    lengthy: bool = False
    here: bool = False
    cached: bool = False
    core: bool = False
    unused: Rule | None = None
    equal: Callable[[Workspace], Callable[[Mapping[str, Any]], Hashable]] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """Declares, as a decorator, that a function is an operation.

    The docstring of the function is the description at the command line, and the type of its argument `params` is the
    model of the parameters.

    Attributes:
        group: Heading of the command in the help of the whole command line.
        command: Words that call the command; "" for an operation without one.
        tool: The MCP tool; None for an operation without one.
        one_door: Why the operation has no command or no tool; "" if it has both.
        reads: Whether the tool never writes.
        destroys: Whether it may delete or overwrite.
        repeatable: Whether repeating a call has no further effect.
        shared: Options of many commands that the command has.
        run: The function.
    """

    group: Group
    command: str
    tool: Tool | None = None
    one_door: str = ""
    reads: bool = False
    destroys: bool = False
    repeatable: bool = True
    shared: tuple[SharedOption, ...] = ("db", "json")
    run: Callable[[Any, Any], Any] | None = None

    def __call__(self, run: Run) -> Run:
        """Declares the operation. Raises TypeError if it neither has both doors nor says why not."""
        if bool(self.command and self.tool) is bool(self.one_door):
            raise TypeError(f"{run.__name__}: one_door is the reason why an operation is not offered at both doors")
        OPERATIONS.append(replace(self, run=run))
        return run

    @property
    def function(self) -> Callable[[Any, Any], Any]:
        """The declared function."""
        assert self.run is not None
        return self.run

    @property
    def params(self) -> type[Parameters]:
        """The model of the parameters."""
        assert self.run is not None
        annotation = self.run.__annotations__["params"]
        model: type[Parameters] = self.run.__globals__[annotation] if isinstance(annotation, str) else annotation
        return model

    @property
    def help(self) -> str:
        """The description at the command line."""
        return cleandoc(self.function.__doc__ or "")

    def options(self) -> list[tuple[str, FieldInfo, Option]]:
        """The fields of the parameters with their names and options."""
        return [(name, field, option_of(field)) for name, field in self.params.model_fields.items()]

    def of_tool(self) -> dict[str, tuple[str, FieldInfo, Option]]:
        """The parameters of the tool by name: the field's name, the field and its option."""
        return {
            option.tool or _camel(name): (name, field, option)
            for name, field, option in self.options()
            if option.tool is not None
        }


operation = Operation
OPERATIONS: list[Operation] = []
"""The operations of the modules imported so far."""


def option_of(field: FieldInfo) -> Option:
    """The option in the annotation of a field."""
    return [each for each in field.metadata if isinstance(each, Option)][-1]


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)
