"""Connecting to PostgreSQL, checks of the server, and the creation of the schema and of workspaces."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS
from speckit_memory.memory.store.postgres.database import _CREATING, OLDEST, SCHEMA
from speckit_memory.memory.store.postgres.schema import FUNCTIONS, POSTINGS, VECTORS, derived, secured

_SHARED = (
    'CREATE TABLE migrations (name text COLLATE "C" PRIMARY KEY, applied_at text NOT NULL, '
    "rowid int GENERATED ALWAYS AS IDENTITY)",
    'CREATE TABLE workspaces (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" UNIQUE NOT NULL)',
    "CREATE TABLE commits (count bigint NOT NULL, request bigint NOT NULL, workspace int NOT NULL DEFAULT "
    "current_setting('speckit.workspace')::int, PRIMARY KEY (workspace, count))",
    "CREATE FUNCTION typeof(v anyelement) RETURNS text LANGUAGE sql STABLE AS $$ "
    "SELECT CASE WHEN v IS NULL THEN 'null' "
    "WHEN pg_typeof(v) = 'bigint'::regtype THEN 'integer' WHEN pg_typeof(v) = 'double precision'::regtype THEN 'real' "
    "WHEN pg_typeof(v) = 'bytea'::regtype THEN 'blob' ELSE 'text' END $$",
    "CREATE VIEW pragma_table_list AS SELECT 'main' AS schema, 'table' AS type, relname::text AS name FROM pg_class "
    f"WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r' "
    "AND relname NOT IN ('workspaces', 'commits', 'postings', 'chunk_vectors')",
    "CREATE VIEW pragma_page_size AS SELECT 8192 AS page_size",
    f"CREATE VIEW pragma_page_count AS SELECT pg_relation_size('{SCHEMA}.chunks') / 8192 AS page_count",
    "CREATE VIEW sqlite_schema AS SELECT 'table' AS type, relname::text AS name FROM pg_class "
    f"WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'p')",
)
"""Tables of all workspaces, and the names of the tables as SQLite shows them."""

_LIMITS = (
    "-c idle_session_timeout=300000 -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)
"""The server closes sessions that are unused for five minutes, and notices within 30 s that a machine is gone, whose
transaction would keep other writers waiting."""


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
        elif "too many" in text or "connection slots" in text:
            actions = ("close other programs, or raise max_connections or the limit of the role", "try again")
        elif "does not exist" in text:
            actions = ("CREATE DATABASE …, or name another one in the address",)
        raise SpeckitError("E020", f"PostgreSQL could not be reached: {_first(error)}", actions=actions) from error
    except psycopg.Error as error:
        raise SpeckitError("E023", f"the schema could not be created: {_first(error)}") from error


def _first(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def connect(url: str, vector: int, workspace: int) -> Any:
    """A new session in a workspace. Raises the driver's errors."""
    import psycopg

    from speckit_memory.memory.store.postgres.adapters import adapters

    return psycopg.connect(
        url,
        autocommit=True,
        context=adapters(vector),
        options=f"-c speckit.workspace={workspace} -c search_path={SCHEMA},public {_LIMITS}",
        application_name="speckit-memory",
    )


def prepare(url: str, workspace: str, *, create: bool) -> tuple[int, int]:
    """Checks the server, creates what is missing, and returns the number of pgvector's type and of the workspace.

    Raises E010 for an unknown workspace that may not be created, E020 for an unusable server or role, and E025 for a
    schema of a later version.
    """
    require_driver()
    import psycopg

    with psycopg.connect(url, autocommit=True, options=f"-c search_path={SCHEMA},public") as session:
        _require_server(session)
        session.execute("SELECT pg_advisory_lock(%s)", (_CREATING,))
        vector = _vector_type(session)
        with session.transaction():
            _create(session)
        number = _workspace(session, workspace, create=create)
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


def _create(session: Any) -> None:
    """Creates the schema, or checks that it is of this version."""
    names = [migration.name for migration in MIGRATIONS]
    if session.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migrations",)).fetchone()[0]:
        done = {name for (name,) in session.execute("SELECT name FROM migrations")}
        if unknown := sorted(done - set(names)):
            raise SpeckitError("E025", f"the store has the unknown migration {', '.join(unknown)}")
        if todo := [name for name in names if name not in done]:
            raise SpeckitError("E023", f"the store lacks the migration {todo[0]}")
        return
    session.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    own = [VECTORS, *secured("chunk_vectors"), *POSTINGS, *secured("postings")]
    for statement in (*FUNCTIONS, *derived().statements, *own, *_SHARED, *secured("commits")):
        session.execute(statement)
    applied = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for name in names:
        session.execute("INSERT INTO migrations (name, applied_at) VALUES (%s, %s)", (name, applied))


def _workspace(session: Any, name: str, *, create: bool) -> int:
    """The number of a workspace, which begins with the rows of a new store."""
    found = session.execute("SELECT id FROM workspaces WHERE name = %s", (name,)).fetchone()
    if found:
        return int(found[0])
    if not create:
        raise SpeckitError("E010", f"there is no workspace {name} in this database")
    with session.transaction():
        (number,) = session.execute("INSERT INTO workspaces (name) VALUES (%s) RETURNING id", (name,)).fetchone()
        session.execute("SELECT set_config('speckit.workspace', %s, true)", (str(number),))
        session.execute("INSERT INTO commits (count, request) VALUES (0, 0)")
        for table, row in derived().seeds:
            marks = ", ".join(["%s"] * len(row))
            if table == "store_identity":
                session.execute("INSERT INTO store_identity VALUES (1, replace(gen_random_uuid()::text, '-', ''))")
            else:
                session.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)
    return int(number)
