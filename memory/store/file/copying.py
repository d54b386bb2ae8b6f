"""A consistent copy of a store that other processes may be writing to."""

from __future__ import annotations

from pathlib import Path

import apsw

from speckit_memory.memory.store.file.guarding.store_file import make_file


def copy_into(connection: apsw.Connection, target: Path) -> None:
    """Copies the file consistently, replacing an earlier copy; the copy gets its name only when it is complete."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)  # of a process that was killed
    make_file(unfinished)
    copy = apsw.Connection(str(unfinished))
    try:
        # SQLite's online backup; one step over all pages copies a single snapshot, even while others write.
        with copy.backup("main", connection, "main") as backup:
            backup.step()
    finally:
        copy.close()
    unfinished.replace(target)
