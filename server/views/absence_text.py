"""Explains why an expected memory is missing from a result, for the command line and MCP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from speckit_memory.engine.explain.caller import ANY_DOOR, CallerCapabilities
from speckit_memory.server.console.arguments.memory_names import of_known

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.answers.results import SearchResult
    from speckit_memory.engine.explain.smallest_change import SmallestChange


def reason_of_absence(
    memory: Memory,
    result: SearchResult,
    typed: str | int,
    again: str = "",
    *,
    door: CallerCapabilities = ANY_DOOR,
    until: float = math.inf,
) -> tuple[str, SmallestChange | None]:
    """Explains why a memory is not in a result, and finds the smallest change that would bring it in.

    Args:
        memory: The open memory.
        result: The search result that lacks the memory.
        typed: Id, key or path of the memory, as the caller typed it.
        again: A command to suggest when the name is unknown; "" for none.
        door: The caller's interface; only changes possible through it are tried.
        until: When to stop trying changes (`time.perf_counter`).

    Returns:
        The reason, and the change; None for the change when the memory is a result.

    Raises:
        SpeckitError: E080 with the nearest keys for an unknown name.
    """

    def told(name: str | int) -> tuple[str, SmallestChange | None]:
        return memory.explain.why_not(result, name), memory.explain.smallest_change(
            result, name, door=door, until=until
        )

    return of_known(memory, typed, told, again=again)
