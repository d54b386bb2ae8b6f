"""What must hold before a file is used as a store."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import apsw

from config.errors import SpeckitError
from memory.store import migrations
from memory.store.schema import APPLICATION_ID

OLDEST_SQLITE = (3, 51, 3)
"""Older ones can damage a file in WAL mode that two processes write at once."""


def require_sqlite(version: str) -> None:
    """Raises E020 when this version of SQLite must not be used."""
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise SpeckitError("E020", f"SQLite {version} is too old, {oldest} is needed", actions=("upgrade apsw",))


def prepare(connection: apsw.Connection, path: Path) -> None:
    """Makes a new file a store and brings an old one up to date; writes nothing to a current one.

    Raises E024 when the file belongs to another program, and as `migrations.migrate` does.
    """
    # One transaction, or another process that makes the store meanwhile would show its tables without its identity.
    connection.execute("BEGIN")
    identity = connection.pragma("application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    connection.execute("COMMIT")
    if identity != APPLICATION_ID and (identity or tables):
        raise SpeckitError("E024", f"{path} is a SQLite file of another program")
    todo = migrations.pending(connection)
    if connection.pragma("journal_mode") != "wal":
        connection.pragma("journal_mode", "wal")
    if todo:
        migrations.migrate(connection, path)


def vector_extension() -> str:
    """The loadable library of sqlite-vec, found without importing its package, which would import numpy."""
    package = importlib.util.find_spec("sqlite_vec")
    if package is None or package.origin is None:
        raise SpeckitError("E020", "the package sqlite-vec is not installed", actions=("install sqlite-vec",))
    return str(Path(package.origin).with_name("vec0"))
