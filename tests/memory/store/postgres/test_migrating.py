"""A database in PostgreSQL of an older version gets the schema of this one by the same migrations as a file."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from postgres_server import database

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, Migration

_names = itertools.count()

NOTES = """
CREATE TABLE notes (
    id INTEGER PRIMARY KEY,
    memory_id INTEGER REFERENCES memories (id) ON DELETE CASCADE,
    text TEXT NOT NULL CHECK (text <> ';')
) STRICT;
CREATE UNIQUE INDEX notes_by_text ON notes (text);
CREATE TRIGGER note_came AFTER INSERT ON notes BEGIN UPDATE graph_state SET version = version + 1; END;
INSERT INTO notes (text) SELECT key || '; ' || value FROM meta WHERE key = 'mine';
ALTER TABLE meta ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;
UPDATE meta SET noted = iif(key = 'mine', 1, 0);
"""


def _number(connection: Any) -> None:
    for identifier, text in connection.execute("SELECT id, text FROM notes").fetchall():
        connection.execute("UPDATE notes SET text = ? WHERE id = ?", (text.upper(), identifier))


LATER = (
    Migration("0901_notes", NOTES, _number, "INSERT OR REPLACE INTO meta VALUES ('notes', 'yes', 7)"),
    Migration("0902_without_trigger", "DROP TRIGGER note_came; ALTER TABLE notes DROP COLUMN memory_id"),
)


def _prepare(url: str, workspace: str, migrations: tuple[Migration, ...]) -> int:
    from speckit_memory.memory.store.postgres.opening import prepare

    return prepare(url, workspace, create=True, migrations=migrations)[1]


def _run(url: str, workspace: int, sql: str, principal: str = "") -> list[tuple[Any, ...]]:
    import psycopg

    options = f"-c search_path=speckit,public -c speckit.workspace={workspace} -c speckit.principal={principal}"
    with psycopg.connect(url, autocommit=True, options=options) as session:
        ran = session.execute(sql)
        return ran.fetchall() if ran.description else []


def _catalogue(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Tables, columns, constraints, indexes, policies, triggers, functions and views, whatever their order."""
    of_schema = "'speckit'::regnamespace"
    queries = {
        "columns": "SELECT c.relname::text, c.relkind::text, c.relrowsecurity, c.relforcerowsecurity, c.reloptions, "
        "a.attname::text, format_type(atttypid, atttypmod), attcollation::regcollation::text, attnotnull, "
        "attgenerated::text, pg_get_expr(adbin, adrelid) FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid "
        "AND attnum > 0 AND NOT attisdropped LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum "
        f"WHERE relnamespace = {of_schema} AND relkind IN ('r', 'v')",
        "constraints": "SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint "
        f"WHERE connamespace = {of_schema}",
        "indexes": "SELECT indexname::text, indexdef FROM pg_indexes WHERE schemaname = 'speckit'",
        "policies": "SELECT tablename::text, policyname::text, cmd, qual, with_check FROM pg_policies",
        "triggers": "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid "
        f"WHERE NOT tgisinternal AND relnamespace = {of_schema}",
        "functions": f"SELECT proname::text, prosrc FROM pg_proc WHERE pronamespace = {of_schema}",
        "views": "SELECT viewname::text, definition FROM pg_views WHERE schemaname = 'speckit'",
    }
    return {name: sorted(map(tuple, _run(url, 0, query)), key=repr) for name, query in queries.items()}


@pytest.fixture
def new_address() -> Callable[[], str]:
    """Makes databases without a schema."""
    return lambda: database(f"migrated{next(_names)}")


def test_a_database_of_every_earlier_version_gets_the_schema_of_a_new_one(new_address: Callable[[], str]) -> None:
    every = (*MIGRATIONS, *LATER)
    stepwise, at_once = new_address(), new_address()
    from speckit_memory.memory.store.postgres import opening

    with pytest.raises(SpeckitError, match="there is no workspace"):
        opening.prepare(stepwise, "w", create=False, migrations=every[:1])
    for count in range(2, len(every) + 1):
        with pytest.raises(SpeckitError, match="there is no workspace"):
            opening.prepare(stepwise, "w", create=False, migrations=every[:count])
    _prepare(at_once, "w", every)

    assert _catalogue(stepwise) == _catalogue(at_once)
    names = [(migration.name,) for migration in every]
    assert _run(stepwise, 0, "SELECT name FROM migrations ORDER BY rowid") == names


def test_the_last_migration_changes_the_rows_of_every_workspace(new_address: Callable[[], str]) -> None:
    url = new_address()
    numbers = [_prepare(url, workspace, MIGRATIONS[:23]) for workspace in ("one", "other")]
    for number, model in zip(numbers, ("static-a", "static-b"), strict=True):
        for name in (model, "encoder"):
            _run(url, number, f"INSERT INTO embedding_cache VALUES ('{name}', 'h', '', 0, 0)")

    assert [_prepare(url, workspace, MIGRATIONS) for workspace in ("one", "other")] == numbers
    for number in numbers:
        assert _run(url, number, "SELECT model_id FROM embedding_cache") == [("encoder",)]


def test_rows_of_every_workspace_are_migrated_in_it_and_written_after_it(new_address: Callable[[], str]) -> None:
    from speckit_memory.memory.store.postgres.connection import Connection
    from speckit_memory.memory.store.postgres.opening import connect
    from speckit_memory.memory.store.postgres.schema import derived

    url, every = new_address(), (*MIGRATIONS, *LATER)
    numbers = [_prepare(url, workspace, MIGRATIONS) for workspace in ("one", "other", "empty")]
    for number, value in zip(numbers, ("a", "b"), strict=False):
        _run(url, number, f"INSERT INTO meta (key, value) VALUES ('mine', '{value}')")
    versions = [_run(url, number, "SELECT version FROM graph_state") for number in numbers]

    numbers.append(_prepare(url, "new", every))

    notes = "SELECT id, text FROM notes"
    assert [_run(url, number, notes) for number in numbers] == [[(1, "MINE; A")], [(1, "MINE; B")], [], []]
    mine = "SELECT key, value, noted FROM meta WHERE key IN ('mine', 'notes') ORDER BY key"
    assert [_run(url, number, mine) for number in numbers] == [
        [("mine", "a", 1), ("notes", "yes", 7)],
        [("mine", "b", 1), ("notes", "yes", 7)],
        [("notes", "yes", 7)],
        [("notes", "yes", 7)],
    ]
    after = [_run(url, number, "SELECT version FROM graph_state") for number in numbers[:3]]
    assert [new[0][0] - old[0][0] for old, new in zip(versions, after, strict=True)] == [1, 1, 0]
    # the new column follows that of the workspace, and rows without names of columns still fit
    vector = int(_run(url, 0, "SELECT 'vector'::regtype::oid::int")[0][0])
    with connect(url, vector, numbers[0]) as session:
        connection = Connection(lambda: session, derived(every).tables, numbers[0])
        connection.execute("INSERT INTO meta VALUES ('later', 'c', 5)")
        later = connection.execute("SELECT value, noted, workspace FROM meta WHERE key = 'later'")
        assert later.get == ("c", 5, numbers[0])


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE made (one INTEGER PRIMARY KEY) STRICT; INSERT INTO missing VALUES (1)",
        "CREATE TABLE made (one INTEGER PRIMARY KEY) STRICT; ALTER TABLE made RENAME TO other",
        "CREATE TABLE made (one INTEGER PRIMARY KEY) STRICT; INSERT INTO meta (key, value) VALUES ('mine', 'again')",
    ],
)
def test_a_migration_that_fails_leaves_everything_as_it_was(new_address: Callable[[], str], statements: str) -> None:
    from speckit_memory.memory.store.postgres.migrating import migrate
    from speckit_memory.memory.store.postgres.opening import connect

    url = new_address()
    number = _prepare(url, "one", MIGRATIONS)
    _run(url, number, "INSERT INTO meta (key, value) VALUES ('mine', 'a')")
    before = _catalogue(url), _run(url, number, "SELECT key, value FROM meta ORDER BY key")
    good = Migration("0900_good", "UPDATE meta SET value = 'changed'")
    failing = Migration("0901_failing", statements)
    with pytest.raises(SpeckitError, match="0901_failing") as raised:
        migrate(connect(url, 0, 0), (*MIGRATIONS, good, failing), {migration.name for migration in MIGRATIONS})

    assert raised.value.code == "E023"
    assert (_catalogue(url), _run(url, number, "SELECT key, value FROM meta ORDER BY key")) == before
    assert _run(url, 0, "SELECT name FROM migrations ORDER BY rowid DESC LIMIT 1") == [(MIGRATIONS[-1].name,)]


def test_a_database_of_a_later_version_is_refused_and_stays(new_address: Callable[[], str]) -> None:
    url = new_address()
    _prepare(url, "one", (*MIGRATIONS, *LATER))
    before = _catalogue(url)
    with pytest.raises(SpeckitError, match="0902_without_trigger") as raised:
        _prepare(url, "one", MIGRATIONS)

    assert raised.value.code == "E025"
    assert _catalogue(url) == before


def test_memories_in_private_folders_become_private_with_the_migration(new_address: Callable[[], str]) -> None:
    url = new_address()
    numbers = [_prepare(url, workspace, MIGRATIONS[:24]) for workspace in ("one", "other")]
    columns = (
        "title, folder, tier, context_type, document_type, memory_type, content_hash, fingerprint, characters, "
        "chunk_count, embedding_status, created_at, updated_at"
    )
    values = "'t', '', 'normal', 'g', 'm', 'd', 'h', '', 1, 1, 'done', 1, 1"
    for number in numbers:
        for memory, key in ((1, "Private/anna/a.md"), (4, "private/a.md"), (7, "docs/private/anna/a.md")):
            _run(url, number, f"INSERT INTO memories (id, key, {columns}) VALUES ({memory}, '{key}', {values})")
            _run(url, number, "INSERT INTO chunks (id, memory_id, ordinal, vector, first_line, last_line, heading, "
                 f"anchor, text) VALUES ({memory + 1}, {memory}, 0, 'zero', 1, 1, '', '', 'words')")  # fmt: skip

    assert [_prepare(url, workspace, MIGRATIONS) for workspace in ("one", "other")] == numbers
    for number in numbers:
        assert _run(url, number, "SELECT id, owner FROM private_ids ORDER BY id") == [(1, "anna"), (2, "anna")]
        assert _run(url, number, "SELECT id FROM memories ORDER BY id") == [(4,), (7,)]
        assert _run(url, number, "SELECT id FROM chunks ORDER BY id") == [(5,), (8,)]
        assert _run(url, number, "SELECT id FROM chunks ORDER BY id", "anna") == [(2,), (5,), (8,)]
