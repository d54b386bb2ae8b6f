"""Reads the rows of long queries in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

ROWS = 4096
"""Rows in memory at a time."""


def blocks(connection: apsw.Connection, sql: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a query in lists of at most `ROWS`."""
    cursor, waiting = connection.execute(sql), []
    for row in cursor:
        waiting.append(row)
        if len(waiting) == ROWS:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
