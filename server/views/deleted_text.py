"""Describes what a deletion removed, or would remove, for the command line and MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from speckit_memory.errors.echo import plural

if TYPE_CHECKING:
    from speckit_memory.engine.api.deletions import DeletionResult

LISTED = 50
"""Memories listed by name."""


def deleted_data(deleted: DeletionResult, dry_run: bool) -> dict[str, Any]:
    """A deletion as plain data. `count` includes all memories; `undo` is the deletion's name, None if none was
    deleted."""
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


def describe_deletion(deleted: DeletionResult, dry_run: bool) -> str:
    """One sentence about a deletion."""
    memories, files = plural(len(deleted.memories), "memory"), plural(len(deleted.files), "file")
    if dry_run:
        return f"{memories} would be deleted, nothing was"
    return f"{memories} deleted, {files} moved aside" if deleted.memories else "no such memory, nothing was deleted"
