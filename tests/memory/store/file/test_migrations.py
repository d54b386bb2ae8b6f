from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest
from answered import refused

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.migrations import (
    MIGRATIONS,
    Migration,
    applied_migrations,
    migrate,
    pending,
)
from speckit_memory.memory.store.tables.memories.source_paths import forget, other_sources, remember, source_paths
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

SECOND = Migration("0002_second", "CREATE TABLE second (a TEXT) STRICT; INSERT INTO meta VALUES ('second', 'yes')")
BROKEN = Migration("0003_broken", "CREATE TABLE third (a TEXT) STRICT; SELECT * FROM nothing")


@pytest.mark.requirement("M1.migrations")
def test_migrations_run_once_in_order_and_are_recorded(database: Database, tmp_path: Path) -> None:
    connection = database.reader()
    steps = (*MIGRATIONS, SECOND)
    assert applied_migrations(connection) == tuple(step.name for step in MIGRATIONS)
    assert pending(connection, steps) == (SECOND,)
    assert migrate(connection, tmp_path / "store.db", steps) == ("0002_second",)
    assert migrate(connection, tmp_path / "store.db", steps) == ()
    assert applied_migrations(connection) == tuple(step.name for step in steps)


def test_the_day_of_a_migration_is_told_by_the_clock_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 86_400.0)
    with Database.open(tmp_path / "new.db") as made:
        assert set(made.reader().execute("SELECT applied_at FROM migrations")) == {("1970-01-02T00:00:00Z",)}


def test_an_old_store_is_copied_before_it_is_changed(database: Database, tmp_path: Path) -> None:
    with database.write() as txn:
        set_meta(txn, "fact", "old")
    migrate(database.reader(), tmp_path / "store.db", (*MIGRATIONS, SECOND))
    with Database.open(tmp_path / "store.db.before-0002_second") as copy:
        assert get_meta(copy.reader(), "fact") == "old"
        assert get_meta(copy.reader(), "second") is None
        assert copy.check() == []
    assert get_meta(database.reader(), "second") == "yes"


def test_a_new_store_is_not_copied(database: Database) -> None:
    assert [file.name for file in database.path.parent.glob("*before*")] == []


@pytest.mark.requirement("M1.migrations")
def test_a_failing_migration_leaves_the_schema_that_another_version_knows(database: Database, tmp_path: Path) -> None:
    connection = database.reader()
    with refused("E023", match="0003_broken"):
        migrate(connection, tmp_path / "store.db", (*MIGRATIONS, SECOND, BROKEN))
    assert not connection.in_transaction
    assert applied_migrations(connection) == tuple(step.name for step in MIGRATIONS)
    assert not connection.table_exists("main", "second")
    assert not connection.table_exists("main", "third")


def test_looking_for_migrations_writes_nothing(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "new.db"))
    assert applied_migrations(connection) == ()
    assert pending(connection) == MIGRATIONS
    connection.close()
    assert (tmp_path / "new.db").stat().st_size == 0


def test_processes_that_open_a_store_at_once_bring_it_up_to_date_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    steps = (*MIGRATIONS, SECOND)
    first, second = apsw.Connection(str(path)), apsw.Connection(str(path))

    def be_faster(_: apsw.Cursor, statement: str, __: object) -> bool:
        """Lets the second finish between the first one's look at the records and its transaction."""
        if statement == "BEGIN IMMEDIATE":
            first.exec_trace = None
            assert migrate(second, path, steps) == tuple(step.name for step in steps)
        return True

    try:
        assert applied_migrations(first) == ()
        first.exec_trace = be_faster
        assert migrate(first, path, steps) == ()
        assert applied_migrations(first) == applied_migrations(second) == tuple(step.name for step in steps)
    finally:
        first.close()
        second.close()


OPENING = """
import sys
from pathlib import Path
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS

print("ready", flush=True)
sys.stdin.readline()
Database.open(Path(sys.argv[1])).close()
"""


@pytest.mark.requirement("M1.migrations")
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
@pytest.mark.usefixtures("processes")
def test_processes_that_open_a_file_at_the_same_moment_make_one_store_and_one_whole_copy(
    tmp_path: Path, old: bool
) -> None:
    """Real processes, let go together, on a new file and on one whose copy takes a while."""
    path = tmp_path / "store.db"
    if old:
        connection = apsw.Connection(str(path))
        connection.pragma("journal_mode", "wal")  # as every store that was opened
        migrate(connection, path, MIGRATIONS[:-1])
        connection.execute("INSERT INTO meta VALUES ('fact', ?)", ("old" * 3_000_000,))
        connection.close()
    with ExitStack() as stack:
        command = [sys.executable, "-c", OPENING, str(path)]
        pipe = subprocess.PIPE
        workers = [
            stack.enter_context(subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe))
            for _ in range(4)
        ]
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        assert [(worker.communicate()[1], worker.returncode) for worker in workers] == [("", 0)] * len(workers)
    with Database.open(path, create=False) as database:
        assert applied_migrations(database.reader()) == tuple(step.name for step in MIGRATIONS)
        assert database.check() == []
    backup = tmp_path / f"store.db.before-{MIGRATIONS[-1].name}"
    assert {file.name for file in tmp_path.iterdir()} == {path.name, *([backup.name] if old else [])}
    if old:
        copy = apsw.Connection(str(backup))
        assert applied_migrations(copy) == tuple(step.name for step in MIGRATIONS[:-1])
        assert copy.execute("SELECT length(value) FROM meta WHERE key = 'fact'").get == 9_000_000
        copy.close()


def test_a_store_without_sources_gets_a_place_for_them_and_keeps_its_memories(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    migrate(connection, path, tuple(step for step in MIGRATIONS if step.name < "0008"))
    connection.execute("INSERT INTO meta VALUES ('fact', 'old')")
    connection.close()
    with Database.open(path) as database:
        assert get_meta(database.reader(), "fact") == "old"
        assert source_paths(database.reader(), "..") == {}
        with database.write() as txn:
            remember(txn, "..", {"docs": False, ".notes": True})
            remember(txn, "../other", {"docs": True})
        assert source_paths(database.reader(), "..") == {".notes": True, "docs": False}
        with database.write() as txn:
            forget(txn, "..", [".notes"])
        assert source_paths(database.reader(), "..") == {"docs": False}
        assert other_sources(database.reader(), "..") == [("../other", "docs")]


def test_the_tokens_of_an_older_store_are_those_of_the_model_that_made_its_vectors(tmp_path: Path) -> None:
    for name, facts in {
        "tokens": {"embedding_model": "m", "token_bytes": "2"},
        "none": {"embedding_model": "m"},
    }.items():
        connection = apsw.Connection(str(tmp_path / f"{name}.db"))
        older = tuple(step for step in MIGRATIONS if step.name < "0006")
        migrate(connection, tmp_path / f"{name}.db", older)
        for key, value in facts.items():
            connection.execute("INSERT INTO meta VALUES (?, ?)", (key, value))
        migrate(connection, tmp_path / f"{name}.db")
        assert get_meta(connection, "token_model") == ("m" if name == "tokens" else None)
        connection.close()
