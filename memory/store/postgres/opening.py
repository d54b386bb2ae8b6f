"""Connecting to PostgreSQL, checks of the server, and the creation of the schema and of workspaces."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, Migration
from speckit_memory.memory.store.postgres.database import _CREATING, OLDEST, SCHEMA
from speckit_memory.memory.store.postgres.migrating import RECORD, migrate
from speckit_memory.memory.store.postgres.schema import FUNCTIONS, POSTINGS, VECTORS, Schema, derived, secured

_SHARED = (
    'CREATE TABLE migrations (name text COLLATE "C" PRIMARY KEY, applied_at text NOT NULL, '
    "rowid int GENERATED ALWAYS AS IDENTITY)",
    'CREATE TABLE workspaces (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" UNIQUE NOT NULL)',
    "ALTER TABLE workspaces ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE workspaces FORCE ROW LEVEL SECURITY",
    "CREATE POLICY of_name ON workspaces USING (name = current_setting('speckit.name')) "
    "WITH CHECK (name = current_setting('speckit.name'))",
    "CREATE TABLE commits (count bigint NOT NULL, "
    "workspace int PRIMARY KEY DEFAULT current_setting('speckit.workspace')::int)",
    "CREATE FUNCTION typeof(v anyelement) RETURNS text LANGUAGE sql STABLE AS $$ "
    "SELECT CASE WHEN v IS NULL THEN 'null' "
    "WHEN pg_typeof(v) = 'bigint'::regtype THEN 'integer' WHEN pg_typeof(v) = 'double precision'::regtype THEN 'real' "
    "WHEN pg_typeof(v) = 'bytea'::regtype THEN 'blob' ELSE 'text' END $$",
    "CREATE VIEW pragma_table_list WITH (security_invoker = true) AS "
    "SELECT 'main' AS schema, 'table' AS type, relname::text AS name FROM pg_class "
    f"WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' "
    "AND relname NOT IN ('workspaces', 'commits', 'postings', 'chunk_vectors')",
    "CREATE VIEW pragma_page_size WITH (security_invoker = true) AS SELECT 8192 AS page_size",
    "CREATE VIEW pragma_page_count WITH (security_invoker = true) AS "
    "SELECT ((coalesce(sum(pg_column_size(chunks)), 0) + 8191) / 8192)::bigint AS page_count FROM chunks",
    "CREATE VIEW sqlite_schema WITH (security_invoker = true) AS "
    "SELECT 'table' AS type, relname::text AS name FROM pg_class "
    f"WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'p')",
)
"""Tables of all workspaces, and the names of the tables as SQLite shows them."""


def require_driver() -> None:
    """Raises E020 when the packages of the extra are not installed."""
    if importlib.util.find_spec("psycopg") is None:
        raise SpeckitError(
            "E020",
            "a store in PostgreSQL needs the package psycopg",
            actions=("pip install 'speckit-memory[postgres]'",),
        )


@contextmanager
def coded_errors(url: str) -> Iterator[None]:
    """Raises E020 for every failure of the driver, with what to do about it."""
    require_driver()
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        role = psycopg.conninfo.conninfo_to_dict(url).get("user", "the role")
        statement = f'GRANT CREATE ON DATABASE … TO "{role}"'
        raise SpeckitError(
            "E020", f"the role may not create the store: {_first(error)}", actions=(statement,)
        ) from error
    except psycopg.OperationalError as error:
        text = str(error)
        actions: tuple[str, ...] = ("check that the server runs and that the address is right",)
        if "SSL" in text or "ssl" in text:
            actions = ("set ssl = on in postgresql.conf", "or leave sslmode out of the address")
        elif "password" in text or "authentication" in text:
            actions = ("put the password into the file that PGPASSFILE names",)
        elif "does not exist" in text:
            actions = ("CREATE DATABASE …, or name another one in the address",)
        raise SpeckitError("E020", f"PostgreSQL could not be reached: {_first(error)}", actions=actions) from error
    except psycopg.Error as error:
        raise SpeckitError("E023", f"the schema could not be created: {_first(error)}") from error


def _first(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def connect(url: str, vector: int, workspace: int) -> Any:
    """A connection of a workspace."""
    import psycopg

    from speckit_memory.memory.store.postgres.connection import Connection, adapters

    session = psycopg.connect(
        url,
        autocommit=True,
        context=adapters(vector),
        options=f"-c speckit.workspace={workspace} -c search_path={SCHEMA},public",
        application_name="speckit-memory",
    )
    return Connection(session, derived().tables, workspace)


def prepare(
    url: str, workspace: str, *, create: bool, migrations: tuple[Migration, ...] = MIGRATIONS
) -> tuple[int, int]:
    """Checks the server, creates or migrates the schema, and returns the numbers of pgvector's type and the workspace.

    Args:
        url: The address of the database.
        workspace: The name of the workspace.
        create: Whether a workspace of a new name may be created.
        migrations: The migrations of the schema, in order.

    Raises:
        SpeckitError: E010 for an unknown workspace that may not be created, E020 for an unusable server or role, E023
            when a migration fails and E025 for a schema of a later version.
    """
    require_driver()
    import psycopg

    with psycopg.connect(url, autocommit=True, options=f"-c search_path={SCHEMA},public") as session:
        _require_server(session)
        session.execute("SELECT pg_advisory_lock(%s)", (_CREATING,))
        vector = _vector_type(session)
        with session.transaction():
            applied = _create(session, migrations)
        if len(applied) < len(migrations):
            migrate(connect(url, vector, 0), migrations, applied)
        number = _workspace(session, workspace, create=create, schema=derived(migrations))
        return vector, number


def _require_server(session: Any) -> None:
    if session.info.server_version < OLDEST:
        raise SpeckitError(
            "E020",
            f"PostgreSQL {session.info.server_version // 10_000} is too old, {OLDEST // 10_000} is needed",
            actions=("upgrade the server",),
        )
    (bound,) = session.execute(
        "SELECT NOT (rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if not bound:
        raise SpeckitError(
            "E020",
            f"row-level security does not bind the role {session.info.user}, so that workspaces would not be apart",
            actions=(
                "CREATE ROLE speckit LOGIN",
                f'GRANT CREATE ON DATABASE "{session.info.dbname}" TO speckit',
                "CREATE EXTENSION IF NOT EXISTS vector",
            ),
        )


def _vector_type(session: Any) -> int:
    import psycopg

    named = "SELECT 'vector'::regtype::oid::int"
    try:
        return int(session.execute(named).fetchone()[0])
    except psycopg.errors.UndefinedObject:
        pass
    try:
        session.execute("CREATE EXTENSION vector")
        return int(session.execute(named).fetchone()[0])
    except psycopg.Error as error:
        raise SpeckitError(
            "E020",
            f"the database {session.info.dbname} has no pgvector: {_first(error)}",
            actions=("CREATE EXTENSION vector  -- as an administrator, in this database",),
        ) from error


def _create(session: Any, migrations: tuple[Migration, ...]) -> set[str]:
    """Creates the schema where there is none. Returns the names of the migrations that the schema has."""
    names = [migration.name for migration in migrations]
    if session.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migrations",)).fetchone()[0]:
        done = {name for (name,) in session.execute("SELECT name FROM migrations")}
        if unknown := sorted(done - set(names)):
            raise SpeckitError("E025", f"the store has the unknown migration {', '.join(unknown)}")
        return done
    session.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    own = [VECTORS, *secured("chunk_vectors"), *POSTINGS, *secured("postings")]
    for statement in (*FUNCTIONS, *derived(migrations).statements, *own, *_SHARED, *secured("commits")):
        session.execute(statement)
    for name in names:
        session.execute(RECORD, (name,))
    return set(names)


def _workspace(session: Any, name: str, *, create: bool, schema: Schema) -> int:
    """The number of a workspace, which begins with the rows of a new store. Other names stay invisible."""
    session.execute("SELECT set_config('speckit.name', %s, false)", (name,))
    found = session.execute("SELECT id FROM workspaces WHERE name = %s", (name,)).fetchone()
    if found:
        return int(found[0])
    if not create:
        raise SpeckitError("E010", f"there is no workspace {name} in this database")
    with session.transaction():
        (number,) = session.execute("INSERT INTO workspaces (name) VALUES (%s) RETURNING id", (name,)).fetchone()
        session.execute("SELECT set_config('speckit.workspace', %s, true)", (str(number),))
        session.execute("INSERT INTO commits (count) VALUES (0)")
        for table, row in schema.seeds:
            if table == "store_identity":
                session.execute(
                    "INSERT INTO store_identity (one, store_id) VALUES (1, replace(gen_random_uuid()::text, '-', ''))"
                )
            else:
                columns = ", ".join(f'"{column}"' for column in schema.tables[table].columns)
                marks = ", ".join(["%s"] * len(row))
                session.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', row)
    return int(number)
