"""Describes memories that no search finds: archived ones, and those whose file is missing (features M5 and I8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.store.tables.memories.archivals import Away


def away_text(put_away: tuple[Away, float], way_back: str) -> str:
    """Says why and since when a memory is hidden from searches, and how to restore it."""
    from speckit_memory.server.views.rows.rows import when

    reason, since = put_away[0], when(put_away[1])
    # absent memories come back with their file, archived ones by a command
    if reason == "absent":
        return f"absent since {since}: no search finds it until its file is back and indexed"
    return f"archived since {since} ({reason}): no search finds it; {way_back} brings it back"


def away_data(put_away: tuple[Away, float] | None) -> dict[str, Any]:
    """The reason and date as a field of an answer; {} for a memory that searches find."""
    from speckit_memory.server.views.rows.rows import when

    if not put_away:
        return {}
    reason, since = put_away[0], when(put_away[1])
    return {"absent": {"since": since}} if reason == "absent" else {"archived": {"reason": reason, "since": since}}
