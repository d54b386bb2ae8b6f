"""What is told of a memory that no search finds because it was archived (feature M5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.store.tables.archivals import Reason


def away_text(put_away: tuple[Reason, float], way_back: str) -> str:
    """Why and since when it is put away, and how it comes back."""
    reason, since = away_data(put_away)["archived"].values()
    return f"archived since {since} ({reason}): no search finds it; {way_back} brings it back"


def away_data(put_away: tuple[Reason, float] | None) -> dict[str, Any]:
    """The same as a field of an answer; none for a memory that searches find."""
    from speckit_memory.server.tools.rows import when

    return {"archived": {"reason": put_away[0], "since": when(put_away[1])}} if put_away else {}
