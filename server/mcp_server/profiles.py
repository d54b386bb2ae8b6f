"""The tools of each profile, and the error for a tool outside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.config.workspace.settings import PROFILE_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.server.operations.mcp_tools import operations_of_tools

if TYPE_CHECKING:
    from speckit_memory.server.calls.tool import SpeckitTool


@cache
def core_tools() -> tuple[str, ...]:
    """The tools of the profile `core`: find, read, write, undo, judge and index, which cover an agent's daily work."""
    return tuple(tool.name for _, tool in operations_of_tools() if tool.core)


@cache
def unsaid() -> dict[str, tuple[str, ...]]:
    """The parameters that the definitions of the profile `core` omit, by tool."""
    return {
        tool.name: tuple(name for name, (_, _, option) in operation.of_tool().items() if option.advanced)
        for operation, tool in operations_of_tools()
    }


def offers(profile: ToolProfile, name: str) -> bool:
    """Whether a profile has the tool."""
    return profile == "full" or name in core_tools()


def offered_tools(tools: Sequence[SpeckitTool], profile: ToolProfile) -> list[SpeckitTool]:
    """The tools of a profile, in the given order."""
    if profile == "full":
        return list(tools)
    # hidden parameters still work; only their definitions are left out to save tokens
    return [tool.saying_less(unsaid().get(tool.name, ())) for tool in tools if offers(profile, tool.name)]


def left_out(name: str, profile: ToolProfile) -> SpeckitError:
    """The error for a tool that exists but is not in the profile."""
    return SpeckitError(
        "E035",
        f"the tool '{name}' is not in the profile '{profile}', which this server offers; the profile 'full' has it",
        actions=(
            "do without it, or have the user do it at the command line",
            f"the user can start the server with `serve --profile full`, or {PROFILE_VARIABLE}=full",
        ),
    )
