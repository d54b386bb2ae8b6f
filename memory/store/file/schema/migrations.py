"""Named, ordered changes of the schema. A released migration is never edited; a new one is appended.

Pending migrations run in one transaction together with their records in the table `migrations`: the schema of a file
always matches its records, and other processes never see a schema between two versions. `applied_migrations` and
`pending` only read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.copying import copy_into
from speckit_memory.memory.store.file.guarding.queries import table_exists
from speckit_memory.memory.store.file.schema.learning_schema import JUDGEMENTS, LEARNING, PROMOTED_READ
from speckit_memory.memory.store.file.schema.packing import PACKED_TEXTS, WITHOUT_UNPACKED, pack_rows
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

SURFACE = """
CREATE VIRTUAL TABLE surface_fts USING fts5 (title, body, content = '', contentless_delete = 1, \
tokenize = 'unicode61 remove_diacritics 0');
INSERT INTO surface_fts (rowid, title, body)
SELECT m.id, m.title, t.body FROM memories m JOIN texts t ON t.memory_id = m.id;
"""
"""The rows of stored memories are made from their texts: see `surface`."""


SUMMARIES = """
CREATE TABLE summaries (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    summary TEXT NOT NULL
) STRICT;
"""
"""A few sentences that sum up a text ("" where none do), and the hash of the content that they are valid for."""


STRUCTURE = """
CREATE TABLE graph_state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    ranked INTEGER NOT NULL,
    greatest REAL NOT NULL CHECK (greatest >= 0)
) STRICT;
INSERT INTO graph_state VALUES (1, 1, 0, 0.0);
CREATE TRIGGER edge_came AFTER INSERT ON causal_edges BEGIN UPDATE graph_state SET version = version + 1; END;
CREATE TRIGGER edge_changed AFTER UPDATE ON causal_edges BEGIN UPDATE graph_state SET version = version + 1; END;
CREATE TRIGGER edge_went AFTER DELETE ON causal_edges BEGIN UPDATE graph_state SET version = version + 1; END;

CREATE TABLE graph_ranks (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    rank REAL NOT NULL CHECK (rank > 0),
    community INTEGER NOT NULL
) STRICT;
CREATE INDEX graph_ranks_by_community ON graph_ranks (community, rank DESC, memory_id);

CREATE TABLE entity_scans (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL
) STRICT;
CREATE TABLE memory_entities (
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    entity TEXT NOT NULL CHECK (entity <> ''),
    kind TEXT NOT NULL,
    PRIMARY KEY (memory_id, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_entities_by_entity ON memory_entities (entity);
"""
"""Centrality and communities of memories, and the entities they mention. Triggers count every change of an edge as a
new version of the graph: see `ranks` and `entities`."""


EMBEDDING_MODELS = """
CREATE TABLE embedding_models (
    model_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    revision TEXT NOT NULL,
    pooling TEXT NOT NULL,
    dimensions INTEGER NOT NULL CHECK (dimensions > 0),
    noted_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE embedding_build (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    model_id TEXT NOT NULL,
    name TEXT NOT NULL,
    done INTEGER NOT NULL CHECK (done >= 0),
    total INTEGER NOT NULL CHECK (total >= 0),
    holder TEXT NOT NULL,
    until REAL NOT NULL
) STRICT;
"""
"""Embedding models by id, and the progress of a build of new vectors next to those in use: see `embedding_models`."""


EDGE_HISTORY = """
ALTER TABLE causal_edges ADD COLUMN said REAL CHECK (said BETWEEN 0 AND 1);

CREATE TABLE edge_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    target_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    changed_at REAL NOT NULL,
    changed_by TEXT NOT NULL CHECK (changed_by <> ''),
    why TEXT NOT NULL,
    before TEXT CHECK (before IS NULL OR json_valid(before)),
    after TEXT CHECK (after IS NULL OR json_valid(after)),
    undoes INTEGER,
    undone_by INTEGER
) STRICT;
CREATE INDEX edge_history_by_edge ON edge_history (source_id, target_id, relation);
CREATE INDEX edge_history_by_target ON edge_history (target_id);

CREATE TABLE session_uses (
    session TEXT NOT NULL CHECK (session <> ''),
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    used_at REAL NOT NULL,
    PRIMARY KEY (session, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_uses_by_memory ON session_uses (memory_id);
CREATE TABLE edge_uses (
    edge_id INTEGER PRIMARY KEY REFERENCES causal_edges (id) ON DELETE CASCADE,
    times INTEGER NOT NULL CHECK (times >= 0),
    last_used REAL NOT NULL
) STRICT;

CREATE TABLE scanned_memories (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    scanned_at REAL NOT NULL
) STRICT;
CREATE TABLE suspected_contradictions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    newer_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    newer_hash TEXT NOT NULL,
    older_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    older_hash TEXT NOT NULL,
    similarity REAL NOT NULL,
    pattern TEXT NOT NULL,
    confidence REAL NOT NULL,
    sentence TEXT NOT NULL,
    found_at REAL NOT NULL,
    dismissed_at REAL,
    UNIQUE (newer_id, older_id)
) STRICT;
CREATE INDEX suspected_contradictions_by_older ON suspected_contradictions (older_id);
"""
"""Changes of edges and of their strength (`said` is the strength given by the creator, where it differs), uses of
edges, and suspected contradictions: see `edge_history`, `edge_uses` and `suspicions`."""


STORE_IDENTITY = """
CREATE TABLE store_identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    store_id TEXT NOT NULL CHECK (length(store_id) = 32)
) STRICT;
INSERT INTO store_identity VALUES (1, lower(hex(randomblob(16))));
"""
"""The identity of this store, which tells its own checkpoints from those of other stores: see `checkpoints`."""


ABSENCES = """
CREATE TABLE absences (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    absent_since REAL NOT NULL,
    expires_at REAL
) STRICT;
CREATE INDEX absences_by_time ON absences (absent_since);

CREATE TABLE restorations (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    file_hash TEXT NOT NULL
) STRICT;

CREATE TABLE removed_files (
    key TEXT PRIMARY KEY,
    file_hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE memories ADD COLUMN ctime_ns INTEGER;
"""
"""Memories whose files are missing, memories restored from a checkpoint that differ from their files, files whose
memories a restore removed, and each file's ctime, which also changes when its mtime is set back."""


UNCACHED_POOLS = "DELETE FROM embedding_cache WHERE model_id GLOB 'static-*'"
"""Vectors pooled of tokens are made as fast as a cache is read: it no longer holds them."""

PRINCIPALS = """
ALTER TABLE memories ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
ALTER TABLE causal_edges ADD COLUMN principal TEXT NOT NULL DEFAULT '';
CREATE TABLE private_ids (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL CHECK (owner <> '')
) STRICT;
"""
"""The principals that wrote memories and links, and, in PostgreSQL, the ids of private memories and their passages.
Nothing is private in a file."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A step from one schema to the next, in SQL without transaction control.

    `convert` brings rows into a form that SQL alone cannot; `afterwards` is SQL that needs these rows.
    """

    name: str
    statements: str
    convert: Callable[[apsw.Connection], None] | None = None
    afterwards: str = ""


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
    Migration("0023_packed_texts", PACKED_TEXTS, pack_rows, WITHOUT_UNPACKED),
    Migration("0024_uncached_pools", UNCACHED_POOLS),
    Migration("0025_principals", PRINCIPALS),
)

_RECORDS = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) STRICT"


def applied_migrations(connection: apsw.Connection) -> tuple[str, ...]:
    """Names of the migrations applied to a file, in the order in which they ran."""
    if table_exists(connection, "migrations"):
        return tuple(name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY rowid"))
    return ()


def pending(connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[Migration, ...]:
    """The migrations still to run.

    Raises E025 when a migration was applied that this version does not know.
    """
    done = applied_migrations(connection)
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
        old = bool(applied_migrations(connection))
        if todo and copied and old:
            _copy(connection, path.with_name(f"{path.name}.before-{todo[0].name}"))
        for migration in todo:
            _run(connection, migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if old and todo:
        # Rows that became smaller leave their pages half empty. Where others read the file, or the disk is full, it
        # keeps its size.
        with suppress(apsw.BusyError, apsw.FullError, apsw.IOError):
            connection.execute("VACUUM")
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
        if migration.convert is not None:
            migration.convert(connection)
        connection.execute(migration.afterwards)
        connection.execute(
            "INSERT INTO migrations VALUES (?, strftime('%FT%TZ', ?, 'unixepoch'))", (migration.name, time.time())
        )
    except (apsw.SQLError, apsw.ConstraintError, UnicodeDecodeError) as error:
        raise SpeckitError("E023", f"migration {migration.name} failed: {error}") from error
