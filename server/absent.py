"""Why a memory that somebody expected is no result, as both doors tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speckit_memory.server.memory_names import of_known

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.results import SearchResult
    from speckit_memory.engine.smallest_change import SmallestChange


def reason_of_absence(
    memory: Memory, result: SearchResult, typed: str | int, again: str = ""
) -> tuple[str, SmallestChange | None]:
    """Why the memory of an id, a key or a path is no result, and what would make it one, None when it is one.

    Raises E080 with the nearest keys, and with the command to try `again` where it is given.
    """
    return of_known(
        memory, typed, lambda name: (memory.why_not(result, name), memory.why_not_change(result, name)), again=again
    )
