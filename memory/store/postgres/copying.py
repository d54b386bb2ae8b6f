"""The workspace that a copy of a store fills before it gets its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.store_address import address_at
from speckit_memory.memory.store.file.guarding.store_file import UNFINISHED
from speckit_memory.memory.store.postgres.database import PostgresDatabase

if TYPE_CHECKING:
    from speckit_memory.memory.store.file.connection import Transaction


def workspace_exists(link: Path, *, unfinished: bool = False) -> bool:
    """Whether the database has the workspace of a store link, or an unfinished copy of that name.

    Raises E050 to E059 as `PostgresDatabase.open`.
    """
    from speckit_memory.memory.store.postgres import opening

    opening.require_driver()
    database = PostgresDatabase(link, address_at(link))
    name = f"{database.workspace}{UNFINISHED}" if unfinished else database.workspace
    own = "SELECT set_config('speckit.name', %s, false)"
    with opening.coded_errors(database.url), opening.plain_session(database.url) as session:
        if session.execute("SELECT to_regclass(%s)", (f"{opening.SCHEMA}.workspaces",)).fetchone()[0] is None:
            return False
        session.execute(own, (database.workspace,))
        return session.execute("SELECT 1 FROM workspaces WHERE name = %s", (name,)).fetchone() is not None


def give_name(copy: PostgresDatabase, txn: Transaction) -> None:
    """Makes an unfinished copy the workspace of its name, with the transaction."""
    name = copy.workspace.removesuffix(UNFINISHED)
    txn.connection.execute("SELECT set_config('speckit.name', ?, true)", (name,))
    txn.connection.execute("UPDATE workspaces SET name = ? WHERE name = ?", (name, copy.workspace))
