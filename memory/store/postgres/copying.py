"""The workspace that a copy of a store fills before it gets its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.store_address import address_at
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.guarding.store_file import UNFINISHED
from speckit_memory.memory.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from speckit_memory.memory.store.file.connection import Transaction


def workspace_exists(link: Path, schemas: Sequence[str], *, unfinished: bool = False) -> bool:
    """Whether one of these schemas has the workspace of a store link, or an unfinished copy of that name.

    Raises E050 to E059 as `PostgresDatabase.open`.
    """
    from speckit_memory.memory.store.postgres import opening

    opening.require_driver()
    database = PostgresDatabase(link, address_at(link))
    name = f"{database.workspace}{UNFINISHED}" if unfinished else database.workspace
    own = "SELECT set_config('speckit.name', %s, false)"
    with opening.coded_errors(database.url), opening.plain_session(database.url) as session:
        session.execute(own, (database.workspace,))
        there = "SELECT to_regclass(%s) IS NOT NULL"
        made = [schema for schema in schemas if session.execute(there, (f"{schema}.workspaces",)).fetchone()[0]]
        of_name = "SELECT 1 FROM {}.workspaces WHERE name = %s"
        return any(session.execute(of_name.format(schema), (name,)).fetchone() for schema in made)


def give_name(copy: PostgresDatabase, txn: Transaction, schemas: Sequence[str]) -> None:
    """Makes an unfinished copy the workspace of its name in these schemas, with the transaction."""
    name = copy.workspace.removesuffix(UNFINISHED)
    txn.connection.execute("SELECT set_config('speckit.name', ?, true)", (name,))
    for schema in schemas:
        if value(txn.connection, "SELECT to_regclass(?)::text", (f"{schema}.workspaces",)):
            renamed = f"UPDATE {schema}.workspaces SET name = ? WHERE name = ?"
            txn.connection.execute(renamed, (name, copy.workspace))
