"""Connecting to PostgreSQL, checks of the server, and the creation of the schema and of workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import UNFINISHED, unfinished_copy
from speckit_memory.memory.store.file.opening import STORE
from speckit_memory.memory.store.file.schema.declared import seeds
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, Migration
from speckit_memory.memory.store.postgres.hnsw import SETTINGS
from speckit_memory.memory.store.postgres.migrating import RECORD, migrate
from speckit_memory.memory.store.postgres.schema import (
    FUNCTIONS,
    POSTINGS,
    VECTORS,
    derived,
    divided,
    protected,
    secured,
)

OLDEST = 160_000
"""The oldest server: 16 has IS JSON and takes subqueries without a name."""
SCHEMA = STORE.schema
_CREATING = 0x53504B43
"""Key of the advisory lock of the process that creates or migrates the schema."""
_OWN_NAMES = f"name IN (current_setting('speckit.name'), current_setting('speckit.name') || '{UNFINISHED}')"
_SHARED = (
    'CREATE TABLE migrations (name text COLLATE "C" PRIMARY KEY, applied_at text NOT NULL, '
    "rowid int GENERATED ALWAYS AS IDENTITY)",
    'CREATE TABLE workspaces (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" UNIQUE NOT NULL)',
    "ALTER TABLE workspaces ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE workspaces FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY of_name ON workspaces USING ({_OWN_NAMES}) WITH CHECK ({_OWN_NAMES})",
    "CREATE TABLE commits (count bigint NOT NULL, request bigint NOT NULL, workspace int NOT NULL DEFAULT "
    "current_setting('speckit.workspace')::int, PRIMARY KEY (workspace, count))",
    "CREATE FUNCTION typeof(v anyelement) RETURNS text LANGUAGE sql STABLE AS $$ "
    "SELECT CASE WHEN v IS NULL THEN 'null' "
    "WHEN pg_typeof(v) = 'bigint'::regtype THEN 'integer' WHEN pg_typeof(v) = 'double precision'::regtype THEN 'real' "
    "WHEN pg_typeof(v) = 'bytea'::regtype THEN 'blob' ELSE 'text' END $$",
    "CREATE VIEW pragma_table_list WITH (security_invoker = true) AS "
    "SELECT 'main' AS schema, 'table' AS type, relname::text AS name FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition "
    "AND relname NOT IN ('workspaces', 'commits', 'postings', 'chunk_vectors', 'last_ids') "
    "UNION ALL SELECT 'main', 'virtual', name FROM unnest(ARRAY['memory_fts', 'surface_fts']) AS name",
    "CREATE VIEW pragma_page_size WITH (security_invoker = true) AS SELECT 8192 AS page_size",
    "CREATE VIEW sqlite_sequence WITH (security_invoker = true) AS SELECT name, id AS seq FROM last_ids",
    "CREATE VIEW sqlite_schema WITH (security_invoker = true) AS "
    "SELECT 'table' AS type, relname::text AS name FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition",
)
"""Tables of all workspaces, and the names of the tables as SQLite shows them."""
_OF_PASSAGES = (
    VECTORS,
    *secured("chunk_vectors"),
    *POSTINGS,
    *secured("postings"),
    "CREATE VIEW pragma_page_count WITH (security_invoker = true) AS "
    "SELECT ((4 * coalesce(sum(pg_column_size(chunks)), 0) + 8191) / 8192)::bigint AS page_count FROM chunks",
)
"""What a schema with passages has instead of SQLite's virtual tables, and their size: that of a file with the same
rows, four times its passages."""

_LIMITS = (
    "-c idle_session_timeout=300000 -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
)
"""The server closes sessions that are unused for five minutes, and notices within 30 s that a machine is gone, whose
transaction would keep other writers waiting."""


def require_driver() -> None:
    """Raises E050 when the packages of the extra are not installed, or the driver lacks its library."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise SpeckitError("E050", f"the package psycopg cannot be used: {_first(error)}") from error


@contextmanager
def coded_errors(url: str) -> Iterator[None]:
    """Raises E030, E051, E054, E056, E058 or E059 for what keeps a connection from being made, and E023 for any other
    failure of the driver; each with what to do about it."""
    require_driver()
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        role, database = _names(url)
        if SCHEMA in str(error):
            step = f'GRANT {SCHEMA} TO "{role}"  -- {SCHEMA}: the role that made the store'
        else:
            step = f'GRANT CREATE ON DATABASE "{database}" TO "{role}"'
        raise SpeckitError(
            "E054", f"the role {role} may not use the store: {_first(error)}", actions=(step,)
        ) from error
    except psycopg.OperationalError as error:
        raise _unreachable(url, error) from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:  # the address itself
            raise SpeckitError(
                "E030", f"the address of the store is not accepted: {_first(error)}", actions=("correct the address",)
            ) from error
        raise SpeckitError("E023", f"the schema could not be created: {_first(error)}") from error
    except psycopg.Error as error:
        raise SpeckitError("E023", f"the schema could not be created: {_first(error)}") from error


def _unreachable(url: str, error: Exception) -> SpeckitError:
    """The error for a connection that could not be made. libpq gives no codes, only texts."""
    role, database = _names(url)
    text = str(error)
    code = "E051"
    actions: tuple[str, ...] = ()
    if "pg_hba.conf" in text or "authentication" in text or "password" in text:
        code = "E058"
        if "no encryption" in text:
            actions = ("add sslmode=require to the address of the store", "check its line in pg_hba.conf")
    elif "SSL" in text or "certificate" in text:
        code = "E056"
    elif f'role "{role}" does not exist' in text:
        code, actions = "E058", (f'CREATE ROLE "{role}" LOGIN', "or name another role in the address of the store")
    elif f'database "{database}" does not exist' in text:
        code, actions = "E059", (f'CREATE DATABASE "{database}" OWNER "{role}"',)
    elif "too many" in text or "connection slots" in text:
        actions = ("close other programs, or raise max_connections or the limit of the role", "try again")
    elif "permission denied for database" in text:
        code, actions = "E054", (f'GRANT CONNECT ON DATABASE "{database}" TO "{role}"',)
    return SpeckitError(code, f"PostgreSQL could not be reached: {_first(error)}", actions=actions)


def _first(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _names(url: str) -> tuple[str, str]:
    """The role and the database of an address, as libpq completes it."""
    from psycopg.pq import Conninfo

    given = {option.keyword: option.val for option in Conninfo.parse(url.encode())}
    preset = {option.keyword: option.val for option in Conninfo.get_defaults()}
    role = (given.get(b"user") or preset.get(b"user") or b"speckit").decode()
    return role, (given.get(b"dbname") or preset.get(b"dbname") or role.encode()).decode()


def connect(url: str, vector: int, workspace: int, principal: str = "", schema: str = SCHEMA) -> Any:
    """A new session of a principal in a workspace. Raises the driver's errors.

    Args:
        url: The address of the database.
        vector: The number of pgvector's type.
        workspace: The number of the workspace.
        principal: Whose private rows are shown; `*` for those of all.
        schema: The name of the schema.
    """
    import psycopg

    from speckit_memory.memory.store.postgres.adapters import adapters

    return psycopg.connect(
        url,
        autocommit=True,
        context=adapters(vector),
        options=f"-c speckit.workspace={workspace} -c speckit.principal={principal} "
        f"-c search_path={schema},public {SETTINGS} {_LIMITS}",
        application_name="speckit-memory",
    )


def plain_session(url: str, schema: str = SCHEMA) -> Any:
    """A session of the driver, of no workspace; as a context manager it is closed at the end."""
    require_driver()
    import psycopg

    return psycopg.connect(url, autocommit=True, options=f"-c search_path={schema},public")


def prepare(
    url: str,
    workspace: str,
    *,
    create: bool,
    migrations: tuple[Migration, ...] = MIGRATIONS,
    schema: str = SCHEMA,
    partitions: int = 0,
) -> tuple[int, int]:
    """Checks the server, creates or migrates the schema, and returns the numbers of pgvector's type and the workspace.

    Args:
        url: The address of the database.
        workspace: The name of the workspace.
        create: Whether a workspace of a new name may be created.
        migrations: The migrations of the schema, in order.
        schema: The name of the schema.
        partitions: How many partitions large tables get where there is no schema yet; 0 for none.

    Raises:
        SpeckitError: E010 for an unknown workspace that may not be created, E052, E053 or E055 for an unusable server
            or role, E023 when a migration fails and E025 for a schema of a later version.
    """
    with plain_session(url, schema) as session:
        _require_server(session)
        session.execute("SELECT pg_advisory_lock(%s)", (_CREATING,))
        vector = _vector_type(session)
        with session.transaction():
            applied = _create(session, migrations, schema, partitions)
        if len(applied) < len(migrations):
            migrate(connect(url, vector, 0, "*", schema), migrations, applied)
        number = _workspace(session, workspace, create=create, migrations=migrations)
        return vector, number


def _require_server(session: Any) -> None:
    if session.info.server_version < OLDEST:
        raise SpeckitError(
            "E052", f"PostgreSQL {session.info.server_version // 10_000} is too old, {OLDEST // 10_000} is needed"
        )
    (bound,) = session.execute(
        "SELECT NOT (rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if not bound:
        raise SpeckitError(
            "E055",
            f"row-level security does not bind the role {session.info.user}, so that workspaces would not be apart",
            actions=(
                "CREATE ROLE speckit LOGIN",
                f'GRANT CREATE ON DATABASE "{session.info.dbname}" TO speckit',
                "name that role in the address of the store",
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
            "E053",
            f"the database {session.info.dbname} has no pgvector: {_first(error)}",
            actions=(
                "CREATE EXTENSION vector  -- as an administrator, in this database",
                "if the server does not have it: install pgvector there (docs/postgresql.md)",
            ),
        ) from error


def _create(session: Any, migrations: tuple[Migration, ...], schema: str, partitions: int) -> set[str]:
    """Creates the schema where there is none. Returns the names of the migrations that the schema has."""
    names = [migration.name for migration in migrations]
    if session.execute("SELECT to_regclass(%s)", (f"{schema}.migrations",)).fetchone()[0]:
        done = {name for (name,) in session.execute("SELECT name FROM migrations")}
        if unknown := sorted(done - set(names)):
            raise SpeckitError("E025", f"the store has the unknown migration {', '.join(unknown)}")
        return done
    session.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    made = derived(migrations)
    own = _OF_PASSAGES if "chunks" in made.tables else ()
    restricted = protected(migrations) if "chunks" in made.tables else ()
    for whole in (*FUNCTIONS, *made.statements, *own, *_SHARED, *secured("commits"), *restricted):
        for statement in divided(whole, partitions):
            session.execute(statement)
    for name in names:
        session.execute(RECORD, (name,))
    return set(names)


def _workspace(session: Any, name: str, *, create: bool, migrations: tuple[Migration, ...]) -> int:
    """The number of a workspace, which begins with the rows of a new store.

    The session sees no other name but that of the unfinished copy of this one.
    """
    session.execute("SELECT set_config('speckit.name', %s, false)", (name.removesuffix(UNFINISHED),))
    found = session.execute("SELECT id FROM workspaces WHERE name = %s", (name,)).fetchone()
    if found:
        return int(found[0])
    if session.execute("SELECT 1 FROM workspaces WHERE name = %s", (name + UNFINISHED,)).fetchone():
        raise unfinished_copy(f"the workspace {name}")
    if not create:
        raise SpeckitError(
            "E010",
            f"there is no workspace '{name}' in the database {session.info.dbname}",
            hint="The address of the store names it: ?workspace=NAME.",
            actions=("correct the name", "create it: run `speckit-memory index PATH`"),
        )
    with session.transaction():
        (number,) = session.execute("INSERT INTO workspaces (name) VALUES (%s) RETURNING id", (name,)).fetchone()
        session.execute("SELECT set_config('speckit.workspace', %s, true)", (str(number),))
        session.execute("INSERT INTO commits (count, request) VALUES (0, 0)")
        tables = derived(migrations).tables
        for table, rows in seeds(migrations, tables).items():
            for row in rows:
                columns = ", ".join(f'"{column}"' for column in tables[table].columns)
                marks = ", ".join(["%s"] * len(row))
                session.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', row)
    return int(number)
