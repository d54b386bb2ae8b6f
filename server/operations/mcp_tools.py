"""Derives the MCP tools from the operations: schema, annotations and replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.server.console.markdown import TEXT_FIELD, about, fields, one_line, quote_text
from speckit_memory.server.operations.catalogue import TOOL_MODULES
from speckit_memory.server.operations.operation import OPERATIONS, Operation, Option, Tool
from speckit_memory.server.replies.call_progress import Pages
from speckit_memory.server.replies.envelope import Reply, nothing

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.server.operations.operation import Row, View
    from speckit_memory.server.workspace.workspace import Workspace


class ToolCall:
    """A call from an MCP client, over the store that all tools share."""

    common = None

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @property
    def config(self) -> Settings:
        """The settings in force."""
        return self.workspace.config

    def memory(self, *, create: bool = False) -> Memory:
        """The open memory."""
        return self.workspace.memory(create=create)

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[[int, int], None]]:  # noqa: ARG002 -- clients show their own
        """Reports to the client, and ends the work if the call was cancelled."""
        yield lambda done, total: self.workspace.on_progress(Pages(done, total))

    def way(self, command: str, tool: str) -> str:  # noqa: ARG002 -- the other door's
        """The wording for a client."""
        return tool


def operations_of_tools() -> list[tuple[Operation, Tool]]:
    """The operations that are tools."""
    for module in TOOL_MODULES:
        import_module(f"speckit_memory.server.operations.{module}")
    declared = [(each, each.tool) for each in OPERATIONS if each.tool]
    return sorted(
        declared, key=lambda each: TOOL_MODULES.index(each[0].function.__module__.partition("operations.")[2])
    )


def function_of(operation: Operation, tool: Tool) -> Callable[..., Reply]:
    """The function of the tool: it takes the workspace, and the parameters as the tool names them."""
    parameters = operation.of_tool()

    def run(workspace: Workspace, /, **values: Any) -> Reply:
        given = {parameters[name][0]: value for name, value in values.items()}
        # validated already: the signature has the types of the model
        params = operation.params.model_construct(**given)
        return reply_of(operation.function(ToolCall(workspace), params), cached=tool.cached)

    run.__name__ = tool.name
    run.__doc__ = tool.brief
    signature = Signature([_parameter(name, *about_it[1:]) for name, about_it in parameters.items()])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what clients give; `inspect.signature` reads it
    return run


def _parameter(name: str, field: Any, option: Option) -> Parameter:
    limits = [each for each in field.metadata if not isinstance(each, Option)]
    described = Field(description=option.brief or field.description)
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        annotation=Annotated[(field.annotation, *limits, described)],
        default=Parameter.empty if field.is_required() or option.required else field.get_default(),
    )


def reply_of(view: View, *, cached: bool = False) -> Reply:
    """The reply of a tool; answers that record nothing may be cached if the operation says so."""
    reply: dict[str, Any] = {"again": nothing} if cached and view.after is None else {}
    reply |= {"facts": fields(dict(view.facts)), "row_text": partial(_row_text, view), "after": view.after}
    return Reply(view.summary, view.data, view.hints, rows=view.rows, **(reply | view.reply))


def _row_text(view: View, _number: int, row: Row) -> str:
    head, *texts = view.cells(row)
    if view.heads:
        texts = [f"{name} {text}" for name, text in zip(view.heads[1:], texts, strict=True) if text]
    # a row below another one begins with a dash of its own
    line = f"  {one_line(head)}" if head.startswith("- ") else "- " + about(head.replace("\n", " "), *texts)
    return f"{line}\n{quote_text(row[TEXT_FIELD])}" if row.get(TEXT_FIELD) else line
