"""Describes what supersedes a memory that is read by name (feature M7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine.search.reading import TextExcerpt


def superseded_text(reading: TextExcerpt) -> str:
    """The memories that supersede it, as a line; "" if there are none."""
    named = [
        f"{other['key']} ({other['title']}, id {other['id']})"
        if other["title"] != other["key"]
        else f"{other['key']} (id {other['id']})"
        for other in reading.superseded_by
    ]
    return f"superseded by {', '.join(named)}" if named else ""


def superseded_data(reading: TextExcerpt) -> dict[str, Any]:
    """The superseding memories as a field of an answer; {} if there are none."""
    return {"superseded_by": list(reading.superseded_by)} if reading.superseded_by else {}
