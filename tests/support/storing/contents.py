"""What a store holds, to be compared bit by bit."""

from __future__ import annotations

from collections.abc import Container
from contextlib import closing
from pathlib import Path

import apsw

from speckit_memory.memory.store.file.opening import vector_extension

RANDOM = ("source_call", "token", "store_id")
"""Columns of random numbers, which tell one history or one query from another."""


def contents(file: Path, without: Container[str] = RANDOM) -> dict[str, list[str]]:
    """All rows of all tables, but for these columns."""
    found = {}
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(vector_extension())
        for (name,) in list(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})") if row[1] not in without]
            named = ", ".join(f'"{column}"' for column in columns)
            found[name] = sorted(map(repr, connection.execute(f"SELECT {named} FROM {name}")))
    assert {"memories", "changes"} <= set(found)
    return found
