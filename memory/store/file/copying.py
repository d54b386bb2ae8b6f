"""A consistent copy of a store that others may be writing to."""

from __future__ import annotations

from pathlib import Path

import apsw

from speckit_memory.memory.store.file.store_file import make_file


def copy_into(connection: apsw.Connection, target: Path) -> None:
    """A consistent copy of the file, replacing one left by an attempt that did not finish."""
    target.unlink(missing_ok=True)
    make_file(target)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", connection, "main") as backup:
            backup.step()
    finally:
        copy.close()
