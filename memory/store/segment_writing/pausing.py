"""A builder that lets others go first: it reads rows of the store for most of its time, and pauses between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from speckit_memory.memory.store.segment_writing.writing import Build, Built

ROWS = 32
"""So many rows are read between two pauses: they take a millisecond or two, for which a search may have to wait."""


def pausing(build: Build, pause: Callable[[], None]) -> Build:
    """The builder with a pause between its rows. What `pause` raises ends it."""

    def paused(connection: apsw.Connection, path: Path) -> Built:
        read = 0

        def row(_cursor: apsw.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
            nonlocal read
            read += 1
            if not read % ROWS:
                pause()
            return values

        connection.row_trace = row
        try:
            return build(connection, path)
        finally:
            connection.row_trace = None

    return paused
