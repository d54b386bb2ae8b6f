"""Named, ordered changes of the schema. A released migration is never edited; a new one is appended.

Pending migrations run in one transaction together with their records in the table `migrations`: the schema of a file
always matches its records, and other processes never see a schema between two versions. `applied` and `pending` only
read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.copying import copy_into
from speckit_memory.memory.store.file.guarding.queries import table_exists
from speckit_memory.memory.store.file.schema.absence_schema import ABSENCES
from speckit_memory.memory.store.file.schema.checkpoint_schema import STORE_IDENTITY
from speckit_memory.memory.store.file.schema.graph_schema import EDGE_HISTORY
from speckit_memory.memory.store.file.schema.learning_schema import JUDGEMENTS, LEARNING, PROMOTED_READ
from speckit_memory.memory.store.file.schema.models_schema import EMBEDDING_MODELS
from speckit_memory.memory.store.file.schema.schema import (
    CHANGE_TOKENS,
    CHUNK_TOKENS,
    FIRST_SCHEMA,
    FORMER_KEYS,
    LIFE,
    LINK_TARGETS,
    PROMOTIONS,
    SESSIONS,
    SOURCE_PATHS,
    TOKEN_COUNTS,
    TOKEN_MODEL,
    UNCOUNTED_FOLDERS,
)
from speckit_memory.memory.store.file.schema.structure_schema import STRUCTURE
from speckit_memory.memory.store.file.schema.summary_schema import SUMMARIES
from speckit_memory.memory.store.file.schema.surface_schema import SURFACE


@dataclass(frozen=True, slots=True)
class Migration:
    """A step from one schema to the next; `statements` is SQL without transaction control."""

    name: str
    statements: str


MIGRATIONS = (
    Migration("0001_first_schema", FIRST_SCHEMA),
    Migration("0002_sessions", SESSIONS),
    Migration("0003_uncounted_folders", UNCOUNTED_FOLDERS),
    Migration("0004_chunk_tokens", CHUNK_TOKENS),
    Migration("0005_link_targets", LINK_TARGETS),
    Migration("0006_token_model", TOKEN_MODEL),
    Migration("0007_promotions", PROMOTIONS),
    Migration("0008_source_paths", SOURCE_PATHS),
    Migration("0009_change_tokens", CHANGE_TOKENS),
    Migration("0010_token_counts", TOKEN_COUNTS),
    Migration("0011_life", LIFE),
    Migration("0012_edge_history", EDGE_HISTORY),
    Migration("0013_learning", LEARNING),
    Migration("0014_former_keys", FORMER_KEYS),
    Migration("0015_structure", STRUCTURE),
    Migration("0016_store_identity", STORE_IDENTITY),
    Migration("0017_embedding_models", EMBEDDING_MODELS),
    Migration("0018_summaries", SUMMARIES),
    Migration("0019_judgements", JUDGEMENTS),
    Migration("0020_promoted_read", PROMOTED_READ),
    Migration("0021_absences", ABSENCES),
    Migration("0022_surface", SURFACE),
)

_RECORDS = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) STRICT"


def applied(connection: apsw.Connection) -> tuple[str, ...]:
    """Names of the migrations applied to a file, in the order in which they ran."""
    if table_exists(connection, "migrations"):
        return tuple(name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY rowid"))
    return ()


def pending(connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[Migration, ...]:
    """The migrations still to run.

    Raises E025 when a migration was applied that this version does not know.
    """
    done = applied(connection)
    # in a damaged file, names may have any type
    unknown = sorted(map(str, set(done) - {migration.name for migration in migrations}))
    if unknown:
        raise SpeckitError("E025", f"the file has the unknown migration {', '.join(unknown)}")
    return tuple(migration for migration in migrations if migration.name not in done)


def migrate(
    connection: apsw.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS, *, copied: bool = True
) -> tuple[str, ...]:
    """Runs the pending migrations. Of several processes that open a file at once, only one copies and changes it.

    Args:
        connection: A connection to the file without an open transaction.
        path: The file, next to which the copy is made.
        migrations: All migrations of this kind of file, in order.
        copied: Whether an old file is first copied to `<file>.before-<migration>`. If not, earlier copies are deleted
            too, since they would keep data that is deleted later.

    Returns:
        The names of the migrations that ran.

    Raises:
        SpeckitError: E023 when a migration fails; the file then keeps its old schema. E025 as `pending`.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        todo = pending(connection, migrations)  # under the lock: another process may have migrated meanwhile
        # a new file has no applied migrations and nothing worth a copy
        if todo and copied and applied(connection):
            _copy(connection, path.with_name(f"{path.name}.before-{todo[0].name}"))
        for migration in todo:
            _run(connection, migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if todo and not copied:
        for step in migrations:
            path.with_name(f"{path.name}.before-{step.name}").unlink(missing_ok=True)
    return tuple(migration.name for migration in todo)


def _copy(connection: apsw.Connection, target: Path) -> None:
    """Copies the file as of before this connection's transaction, by a second connection that does not see it."""
    reader = apsw.Connection(connection.filename, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        copy_into(reader, target)
    finally:
        reader.close()


def _run(connection: apsw.Connection, migration: Migration) -> None:
    try:
        connection.execute(_RECORDS)
        connection.execute(migration.statements)
        connection.execute(
            "INSERT INTO migrations VALUES (?, strftime('%FT%TZ', ?, 'unixepoch'))", (migration.name, time.time())
        )
    except (apsw.SQLError, apsw.ConstraintError) as error:
        raise SpeckitError("E023", f"migration {migration.name} failed: {error}") from error
