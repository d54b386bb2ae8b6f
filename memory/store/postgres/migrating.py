"""Migrates a database to a later schema by the same named list of migrations as files, translated.

Statements that change the schema run once, statements that change rows run for every workspace, in the order in which a
migration has them. All pending migrations run in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.failures import DriverError
from speckit_memory.memory.store.file.schema.declared import is_complete
from speckit_memory.memory.store.file.schema.migrations import Migration
from speckit_memory.memory.store.postgres.connection import Connection
from speckit_memory.memory.store.postgres.schema import LIST_PRIVATE, alterations, derived, protected, unprotected

RECORD = (
    "INSERT INTO migrations (name, applied_at) "
    "VALUES (%s, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'))"
)
"""Records a migration as applied."""


def migrate(session: Any, migrations: tuple[Migration, ...], applied: set[str]) -> None:
    """Runs the migrations of a list that were not applied, and closes the session.

    Raises E023 when one fails; the database then keeps its old schema.
    """
    import psycopg

    with session, session.transaction():
        workspaces = _workspaces(session)
        for statement in unprotected(derived(tuple(each for each in migrations if each.name in applied)).tables):
            session.execute(statement)
        for at, migration in enumerate(migrations):
            if migration.name in applied:
                continue
            try:
                tables = derived(migrations[:at]).tables | derived(migrations[: at + 1]).tables
                _run(migration, session, [Connection(lambda: session, tables, number) for number in workspaces])
                session.execute(RECORD, (migration.name,))
            except psycopg.errors.InsufficientPrivilege:
                raise
            except (psycopg.Error, DriverError, ValueError) as error:
                raise SpeckitError("E023", f"migration {migration.name} failed: {error}") from error
        protecting = list(protected(migrations))
        for statement in protecting:
            session.execute(statement)
        if protecting:
            for number in workspaces:
                session.execute("SELECT set_config('speckit.workspace', %s, true)", (str(number),))
                session.execute(LIST_PRIVATE)


def _workspaces(session: Any) -> list[int]:
    """The numbers of all workspaces, which only the owner of the tables can read, with the policy suspended."""
    session.execute("ALTER TABLE workspaces NO FORCE ROW LEVEL SECURITY")
    found = [number for (number,) in session.execute("SELECT id FROM workspaces ORDER BY id")]
    session.execute("ALTER TABLE workspaces FORCE ROW LEVEL SECURITY")
    return found


def _run(migration: Migration, session: Any, workspaces: Sequence[Connection]) -> None:
    for statement in _split(migration.statements):
        _apply(statement, session, workspaces)
    if migration.convert is not None:
        for workspace in _each(workspaces):
            migration.convert(workspace)  # type: ignore[arg-type]  # it has the interface of the driver's
    for statement in _split(migration.afterwards):
        _apply(statement, session, workspaces)


def _apply(statement: str, session: Any, workspaces: Sequence[Connection]) -> None:
    changes = alterations(statement)
    if changes is None:
        for workspace in _each(workspaces):
            workspace.execute(statement)
    for change in changes or ():
        session.execute(change)


def _each(workspaces: Sequence[Connection]) -> Iterator[Connection]:
    """These connections of one session, each while the session is in its workspace."""
    for workspace in workspaces:
        workspace.session.execute("SELECT set_config('speckit.workspace', %s, true)", (str(workspace.workspace),))
        yield workspace


def _split(text: str) -> Iterator[str]:
    """The statements of a text; those of a trigger stay together."""
    statement = ""
    for part in text.split(";"):
        statement += f"{part};"
        if is_complete(statement):
            if whole := statement.strip().removesuffix(";"):
                yield whole
            statement = ""
