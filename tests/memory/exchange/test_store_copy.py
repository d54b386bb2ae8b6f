"""A store copied as a whole is equal row by row, whatever its engine, and is not served before it is complete."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from killing import killed, points, spread
from postgres_server import link_at, server
from storing.contents import contents

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.exchange.store_copy import StoreCopy, copy_store
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.checkpoints.folder import Folder
from speckit_memory.memory.store.evaluation.database import evaluation_file
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.postgres.schema import derived
from tests.memory.store.transfer.test_every_table import DOCUMENTS, ROWS
from tests.server.doors import environment

OTHERS = """
INSERT INTO embedding_cache VALUES ('model', 'h', x'0000803F00000000', 1.5, 2.5), ('model', 'i', x'', 0.1, 1e300);
INSERT INTO uncounted_folders VALUES ('a', 1);
INSERT INTO changed_keys VALUES ('a/ä 検索.md');
INSERT INTO changed_links VALUES ({first});
INSERT INTO job_runs VALUES ('ranks', 1.0, 2.0, 3, 0, '');
INSERT INTO job_lease VALUES (1, 'me', 1.0);
INSERT INTO graph_ranks VALUES ({first}, 0.1, 2);
INSERT INTO entity_scans VALUES ({first}, 'h');
INSERT INTO memory_entities VALUES ({first}, 'SQLite', 'name');
INSERT INTO embedding_build VALUES (1, 'other', 'name', 1, 2, 'me', 3.0);
INSERT INTO summaries VALUES ({first}, 'h', 'what "it" says, in short');
INSERT INTO removed_files VALUES ('gone.md', 'h');
"""
"""Rows of the tables that a checkpoint leaves out."""


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A store with rows in every table, a checkpoint and an evaluation database."""
    root = tmp_path / "full"
    root.mkdir()
    path = root / "memory.db"
    with Memory.open(path, root=root, environ={}) as memory:
        memory.index_documents(DOCUMENTS)
        memory.feedback.delivered(memory.search("another thing"))
        memory.checkpoints.create("before")
    with apsw.Connection(str(path)) as connection:
        ids = {key[2:-3]: number for number, key in connection.execute("SELECT id, key FROM memories")}
        connection.execute((ROWS + OTHERS).format(**ids) + "UPDATE id_sequence SET next = 100;")
    connection.close()
    return path


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


class Stop:
    """Stops a copy after some reports of progress."""

    def __init__(self, reports: int) -> None:
        self.left = reports

    def __call__(self, _done: int, _total: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def plain(path: Path) -> dict[str, list[str]]:
    """All rows of a file, but for the storage of virtual tables: pages of an index depend on the order of writing."""
    return {name: found for name, found in contents(path, ()).items() if name in derived().tables}


def evaluated(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a store's evaluation database."""
    with closing(apsw.Connection(str(evaluation_file(path)))) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def places(path: Path) -> list[list[tuple[object, ...]]]:
    """The words and vectors of a store."""
    with Database.open(path) as database:
        connection = database.reader()
        connection.execute("CREATE VIRTUAL TABLE temp.places USING fts5vocab('main', 'surface_fts', 'instance')")
        return [
            rows(connection, "SELECT * FROM temp.memory_word_places"),
            rows(connection, "SELECT * FROM temp.places"),
            rows(connection, "SELECT rowid, embedding FROM chunk_vectors ORDER BY rowid"),
        ]


@pytest.mark.requirement("M14.copied")
def test_a_store_comes_back_from_postgresql_row_by_row(full: Path, tmp_path: Path) -> None:
    there, back = link_at(tmp_path / "memory.store"), tmp_path / "back" / "memory.db"
    before = plain(full)
    assert [name for name, found in before.items() if not found] == ["private_ids"]  # which is of PostgreSQL
    done = copy_store(full, there, quiet)
    assert copy_store(there, back, quiet) == done
    assert (done.memories, done.checkpoints, done.deletions, done.evaluation) == (3, 1, 0, True)
    assert plain(back) == before
    assert places(back) == places(full)
    assert evaluated(back) == evaluated(full) != {}
    assert Folder(back).all() == Folder(full).all()
    with Database.open(back) as database:
        assert database.check() == []
    with Memory.open(there, root=tmp_path, environ={}) as memory:
        memory.index_documents([Source("new.md", "# New\n\nCame to the copy.\n")])
        assert memory.get("new.md").id == 100


@pytest.mark.requirement("M14.copied")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_copy_stopped_anywhere_is_not_served_and_continues(full: Path, tmp_path: Path, engine: str) -> None:
    target = tmp_path / "memory.db"
    if engine == "postgres":
        link_at(target)

    done: StoreCopy | None = None
    stops = 0
    while done is None:
        try:
            done = copy_store(full, target, Stop(stops))
        except KeyboardInterrupt:
            stops += 1
            with pytest.raises(SpeckitError, match=r"E020 .* not finished"):
                Database.open(target)
    assert stops > 50
    assert {table.name for table in done.tables} >= set(derived().tables)
    with Database.open(target, create=False) as database:
        assert database.check() == []


@pytest.mark.requirement("M14.copied")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_changed_since_an_interruption_is_copied_as_it_is_now(full: Path, tmp_path: Path, engine: str) -> None:
    target, back = tmp_path / "memory.db", tmp_path / "back.db"
    if engine == "postgres":
        link_at(target)

    with pytest.raises(KeyboardInterrupt):
        copy_store(full, target, Stop(len(derived().tables)))
    with Memory.open(full, root=tmp_path, environ={}) as memory:
        memory.index_documents([replace(DOCUMENTS[0], text="# First\n\nAltogether other words.\n")])
    copy_store(full, target, quiet)
    copy_store(target, back, quiet)
    assert plain(back) == plain(full)
    assert places(back) == places(full)


@pytest.mark.requirement("M14.copied")
def test_a_copy_is_never_made_over_anything(full: Path, tmp_path: Path) -> None:
    there = link_at(tmp_path / "memory.store")
    copy_store(full, there, quiet)
    for target in (full, there):
        with pytest.raises(SpeckitError, match=r"E014 .* exists already"):
            copy_store(full, target, quiet)
    beside = tmp_path / "new.evaluation.db"
    beside.touch()
    with pytest.raises(SpeckitError, match=r"E014 .*new\.evaluation\.db exists already"):
        copy_store(full, tmp_path / "new.db", quiet)
    assert not (tmp_path / "new.db.unfinished").exists()


@pytest.mark.requirement("M14.copied")
def test_words_that_are_out_of_step_leave_the_copy_unfinished(full: Path, tmp_path: Path) -> None:
    with Database.open(full) as database, database.write() as txn:
        txn.connection.execute("DELETE FROM surface_fts WHERE rowid = 1")
    with pytest.raises(SpeckitError, match=r"E024 the copy differs from .* in surface_fts"):
        copy_store(full, tmp_path / "copy.db", quiet)
    with pytest.raises(SpeckitError, match="E020"):
        Database.open(tmp_path / "copy.db")


@pytest.mark.requirement("M14.copied")
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_killed_copy_continues(full: Path, tmp_path: Path, engine: str) -> None:
    root, env = full.parent, environment(full.parent)

    def command(name: str) -> list[str]:
        place = str(root / f"{name}.db") if engine == "sqlite" else f"{server()}&workspace={tmp_path.name}{name}"
        return ["store", "copy", str(full), place]

    passed = points(root, command("whole"), env)
    for number, at in enumerate(spread(passed - 20, 4, first=passed // 4)):
        name = f"at{number}"
        assert killed(root, command(name), env, at)
        assert not killed(root, command(name), env, 10 * passed)
        copied, back = root / f"{name}.db", tmp_path / f"{name}.db"
        if engine == "postgres":
            copied.write_text(command(name)[-1], encoding="utf-8")
        copy_store(copied, back, quiet)
        assert (plain(back), places(back)) == (plain(full), places(full))
