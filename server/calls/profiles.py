"""Which tools each profile offers, and what is said of a tool that is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from speckit_memory.config.options.tool_profile import ToolProfile
from speckit_memory.config.workspace.settings import PROFILE_VARIABLE
from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from speckit_memory.server.calls.tool import SpeckitTool

CORE = (
    "memory_context",
    "memory_search",
    "memory_save",
    "memory_delete",
    "memory_validate",
    "memory_index_scan",
)
"""Find, read, write, take back, judge, and fill an empty store: no task of an agent's day ends for want of another."""

UNSAID = {
    "memory_search": (
        "autoDetectIntent",
        "includeConstitutional",
        "minState",
        "applyStateLimits",
        "useDecay",
        "includeContiguity",
        "enableSessionBoost",
        "enableCausalBoost",
        "rerank",
        "applyLengthPenalty",
        "bypassCache",
    ),
    "memory_index_scan": ("includeConstitutional", "includeSpecDocs"),
}
"""Parameters that the small profile's definitions are silent about: an agent hardly ever needs them."""


def offers(profile: ToolProfile, name: str) -> bool:
    """Whether a profile has the tool of this name."""
    return profile == "full" or name in CORE


def offered(tools: Sequence[SpeckitTool], profile: ToolProfile) -> list[SpeckitTool]:
    """The tools of a profile, in the order in which they are given."""
    if profile == "full":
        return list(tools)
    return [tool.saying_less(UNSAID.get(tool.name, ())) for tool in tools if offers(profile, tool.name)]


def left_out(name: str, profile: ToolProfile) -> SpeckitError:
    """The error for a tool that exists, but not in the profile that is served."""
    return SpeckitError(
        "E035",
        f"the tool '{name}' is not in the profile '{profile}', which this server offers; the profile 'full' has it",
        actions=(
            "do without it, or have the user do it at the command line",
            f"the user can start the server with `serve --profile full`, or {PROFILE_VARIABLE}=full",
        ),
    )
