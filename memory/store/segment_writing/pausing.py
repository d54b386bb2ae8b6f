"""Wraps a builder of segments so that it yields to other threads: it pauses between the rows it reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from speckit_memory.memory.store.segment_writing.writing import Build, SegmentTableInfo

ROWS = 32
"""Rows read between two pauses: a millisecond or two, which a search may have to wait."""


def pausing(build: Build, pause: Callable[[], None]) -> Build:
    """The builder with pauses between its rows. An exception from `pause` aborts it."""

    def paused(connection: apsw.Connection, path: Path) -> SegmentTableInfo:
        read = 0

        def row(_cursor: apsw.Cursor, values: tuple[Any, ...]) -> tuple[Any, ...]:
            nonlocal read
            read += 1
            if not read % ROWS:
                pause()
            return values

        # A row trace sees every row of every query, so the builders need not call `pause` themselves.
        connection.row_trace = row
        try:
            return build(connection, path)
        finally:
            connection.row_trace = None

    return paused
