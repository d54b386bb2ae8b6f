"""A consistent copy of a store that others may be writing to."""

from __future__ import annotations

from pathlib import Path

import apsw

from speckit_memory.memory.store.file.guarding.store_file import make_file


def copy_into(connection: apsw.Connection, target: Path) -> None:
    """A consistent copy of the file, replacing an earlier one; it is whole from the moment it has its name."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)  # of a process that was killed
    make_file(unfinished)
    copy = apsw.Connection(str(unfinished))
    try:
        with copy.backup("main", connection, "main") as backup:
            backup.step()
    finally:
        copy.close()
    unfinished.replace(target)
