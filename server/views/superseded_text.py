"""What is told of a memory that others replace, where it is read by its name (feature M7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.search.reading import Reading


def superseded_text(reading: Reading) -> str:
    """What replaces it, in a line; "" where nothing does."""
    named = [
        f"{other['key']} ({other['title']}, id {other['id']})"
        if other["title"] != other["key"]
        else f"{other['key']} (id {other['id']})"
        for other in reading.superseded_by
    ]
    return f"superseded by {', '.join(named)}" if named else ""


def superseded_data(reading: Reading) -> dict[str, Any]:
    """The same as a field of an answer."""
    return {"superseded_by": list(reading.superseded_by)} if reading.superseded_by else {}
