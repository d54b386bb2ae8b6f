"""Describes the deletion of a memory to callers who name it: its time, and how to restore it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from speckit_memory.errors import NotFoundError, SpeckitError
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.missing import MissingMemoryError

_HINT = "Restoring it brings back its file and its judgements and links; the last 1,000 deletions of 90 days are kept."


class DeletedMemoryError(NotFoundError):
    """E080: this memory was deleted, and can be restored."""


def deletion_error(store: Path, connection: Connection, missing: MissingMemoryError) -> SpeckitError:
    """An error that describes the deletion of a missing memory; `missing` itself if no deletion is known.

    Of several deletions of one key the latest is described.
    """
    from speckit_memory.memory.store.checkpoints import deletions
    from speckit_memory.memory.store.reading.reader import known_files

    for gone in deletions.deletions(store):
        for number, key in gone.memories.items():
            if missing.name not in (number, key):
                continue
            at = datetime.fromtimestamp(gone.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            others = len(gone.memories) - 1
            beside = f", with {others:,} more" if others else ""
            message = f"{key} (id {number}) was deleted on {at}{beside}"
            back: tuple[str, ...] = (f'memory_delete with undo="{gone.name}"', f"speckit-memory undelete {gone.name}")
            if now := known_files(connection, key).get(key):
                # restoring would be refused (E108); the new memory has taken its place
                back = (f"ask for {key}, which was added since with the id {now.id}",)
            return DeletedMemoryError("E080", message, hint=_HINT, actions=back)
    return missing
