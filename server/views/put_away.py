"""What is told of a memory that no search finds because it was archived, or its file is away (features M5 and I8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.store.tables.memories.archivals import Away


def away_text(put_away: tuple[Away, float], way_back: str) -> str:
    """Why and since when it is put away, and how it comes back."""
    from speckit_memory.server.views.rows.rows import when

    reason, since = put_away[0], when(put_away[1])
    if reason == "absent":
        return f"absent since {since}: no search finds it until its file is there again and indexed"
    return f"archived since {since} ({reason}): no search finds it; {way_back} brings it back"


def away_data(put_away: tuple[Away, float] | None) -> dict[str, Any]:
    """The same as a field of an answer; none for a memory that searches find."""
    from speckit_memory.server.views.rows.rows import when

    if not put_away:
        return {}
    reason, since = put_away[0], when(put_away[1])
    return {"absent": {"since": since}} if reason == "absent" else {"archived": {"reason": reason, "since": since}}
