"""A consistent copy of a store that other processes may be writing to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from speckit_memory.memory.store.file.guarding.store_file import make_file, unfinished_file


def copy_into(connection: apsw.Connection, target: Path) -> None:
    """Copies the file consistently, replacing an earlier copy; the copy gets its name only when it is complete."""
    unfinished = unfinished_file(target)
    unfinished.unlink(missing_ok=True)  # of a process that was killed
    make_file(unfinished)
    # one step over all pages copies a single snapshot, even while others write
    copy_pages(connection, unfinished)
    unfinished.replace(target)


def copy_pages(
    connection: apsw.Connection, file: Path, pages: int = -1, progress: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Copies a database by SQLite's online backup.

    Args:
        connection: The database; inside a read transaction its pages stay the same, so that no step begins again.
        file: An empty file.
        pages: Number of pages of a step, between two reports of progress; all at once by default.
        progress: Called with the numbers of copied and of all pages; an exception from it ends the copy.
    """
    with closing(apsw.Connection(str(file))) as copy, copy.backup("main", connection, "main") as backup:
        while not backup.done:
            backup.step(pages)
            progress(backup.page_count - backup.remaining, backup.page_count)
