"""Why a memory that somebody expected is no result, as both doors tell it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from speckit_memory.engine.explain.caller import ANY_DOOR, Door
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
    door: Door = ANY_DOOR,
    until: float = math.inf,
) -> tuple[str, SmallestChange | None]:
    """Why the memory of an id, a key or a path is no result, and what would make it one, None when it is one.

    What callers of the `door` can change is tried until then (`time.perf_counter`). Raises E080 with the nearest keys,
    and with the command to try `again` where it is given.
    """

    def told(name: str | int) -> tuple[str, SmallestChange | None]:
        return memory.why_not(result, name), memory.why_not_change(result, name, door=door, until=until)

    return of_known(memory, typed, told, again=again)
