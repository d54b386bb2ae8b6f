"""What the named migrations declare, for stores in another engine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple

import apsw

from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, Migration

_TEXT = re.compile(r'"?(\w+)"? TEXT\b')


class Declared(NamedTuple):
    """The entries of a new database's schema."""

    entries: list[tuple[str, str, str, str]]
    """Kind, name, table and statement of each."""
    columns: dict[str, list[tuple[object, ...]]]
    """What `PRAGMA table_info` says of each table."""
    references: dict[str, list[tuple[object, ...]]]
    """What `PRAGMA foreign_key_list` says of each table."""


def is_complete(statement: str) -> bool:
    """Whether a text ends where a statement ends; a semicolon within a trigger does not end it."""
    return apsw.complete(statement)


def _migrated(migrations: tuple[Migration, ...]) -> apsw.Connection:
    made = apsw.Connection(":memory:")
    for migration in migrations:
        made.execute(migration.statements)
        if migration.convert is not None:
            migration.convert(made)
        made.execute(migration.afterwards)
    return made


def seeds(migrations: tuple[Migration, ...], tables: Iterable[str]) -> dict[str, list[tuple[object, ...]]]:
    """The rows that these tables of a new database begin with; random values are others at each call."""
    with closing(_migrated(migrations)) as made:
        return {name: made.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}


@cache
def declared(migrations: tuple[Migration, ...]) -> Declared:
    """The schema after these migrations."""
    with closing(_migrated(migrations)) as made:
        entries: list[Any] = made.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        ).fetchall()
        tables = [name for kind, name, _, sql in entries if kind == "table" and not sql.startswith("CREATE VIRTUAL")]
        columns, references = (
            {name: made.execute(f"PRAGMA {pragma}({name})").fetchall() for name in tables}
            for pragma in ("table_info", "foreign_key_list")
        )
    return Declared(entries, columns, references)


@cache
def text_columns() -> frozenset[str]:
    """The names of all columns of texts."""
    return frozenset(name for entry in declared(MIGRATIONS).entries for name in _TEXT.findall(entry[3]))


@cache
def nullable_columns() -> frozenset[str]:
    """The names of all columns that can hold NULL, in one table at least."""
    columns = declared(MIGRATIONS).columns
    own = (facts for name, found in columns.items() if not name.startswith("sqlite_") for facts in found)
    return frozenset(str(name) for _, name, _, required, _, key in own if not required and not key)
