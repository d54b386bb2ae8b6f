"""What a deletion has taken, or would take, as plain data for every door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speckit_memory.server.console.output import counted

if TYPE_CHECKING:
    from speckit_memory.engine.api.deletion import Deleted

LISTED = 50
"""So many memories are named."""


def deleted_data(deleted: Deleted, dry_run: bool) -> dict[str, Any]:
    """`count` is all of them; `undo` the name of the deletion, None where nothing was deleted."""
    return {
        "count": len(deleted.memories),
        "dry_run": dry_run,
        "undo": deleted.name or None,
        "checkpoint": deleted.checkpoint or None,
        "files_moved": len(deleted.files),
        "memories": [
            {"id": one.id, "key": one.key, "title": one.title, "tier": str(one.tier)}
            for one in deleted.memories[:LISTED]
        ],
    }


def told(deleted: Deleted, dry_run: bool) -> str:
    """One sentence about it."""
    memories, files = counted(len(deleted.memories), "memory"), counted(len(deleted.files), "file")
    if dry_run:
        return f"{memories} would be deleted, nothing was"
    return f"{memories} deleted, {files} moved aside" if deleted.memories else "no such memory, nothing was deleted"
