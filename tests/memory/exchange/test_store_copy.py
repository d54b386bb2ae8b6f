"""A store copied as a whole is equal row by row, whatever its engine, and is not served before it is complete."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from killing import killed, points, spread
from postgres_server import database as database_of_name
from postgres_server import link_at, server
from storing.contents import contents
from storing.evaluations import record_everything

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.exchange import store_copy
from speckit_memory.memory.exchange.store_copy import StoreCopy, copy_store
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.checkpoints.folder import Folder
from speckit_memory.memory.store.evaluation.database import evaluation_file
from speckit_memory.memory.store.evaluation.workspace import evaluation_at
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.postgres.schema import derived
from speckit_memory.memory.store.segment_files.segment_store import FEWEST, SegmentStore
from speckit_memory.memory.store.transfer.row_copy import evaluation_parts
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
    record_everything(evaluation_file(path))
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
    """All rows of a store's evaluation database, in any engine."""
    database = evaluation_at(evaluation_file(path), create=False, busy_timeout_ms=1_000)
    with closing(database), database.reading() as connection:
        return {part.name: list(part.rows(connection)) for part in evaluation_parts()}


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
    assert evaluated(back) == evaluated(there) == evaluated(full)
    assert [name for name, found in evaluated(full).items() if not found] == []
    assert not evaluation_file(there).name.endswith("evaluation.db")  # it is in the database
    assert Folder(back).all() == Folder(full).all()
    with Database.open(back) as database:
        assert database.check() == []
    with Memory.open(there, root=tmp_path, environ={}) as memory:
        memory.index_documents([Source("new.md", "# New\n\nCame to the copy.\n")])
        assert memory.get("new.md").id == 100


@pytest.mark.requirement("M14.copied")
@pytest.mark.parametrize(
    ("engine", "step"), [("sqlite", 1), ("postgres", 3), ("another workspace", 40), ("another database", 40)]
)
def test_a_copy_stopped_anywhere_is_not_served_and_continues(
    full: Path, tmp_path: Path, engine: str, step: int
) -> None:
    source, target = full, tmp_path / "memory.db"
    if engine.startswith("another"):
        source = link_at(tmp_path / "source.store")
        copy_store(full, source, quiet)
    if engine != "sqlite":
        link_at(target, database_of_name("other") if engine == "another database" else "")

    done: StoreCopy | None = None
    stops = 0
    while done is None:
        try:
            done = copy_store(source, target, Stop(stops * step))
        except KeyboardInterrupt:
            stops += 1
            with pytest.raises(SpeckitError, match=r"E020 .* not finished"):
                Database.open(target)
    assert stops * step > 50
    assert {table.name for table in done.tables} >= set(derived().tables) - {"private_ids"}
    with Database.open(target, create=False) as database:
        assert database.check() == []
    if source != full:
        back = tmp_path / "back" / "memory.db"
        copy_store(target, back, quiet)
        assert (plain(back), places(back), evaluated(back)) == (plain(full), places(full), evaluated(full))


@pytest.mark.requirement("M14.copied")
def test_an_unfinished_copy_is_opened_by_no_name(full: Path, tmp_path: Path) -> None:
    target = link_at(tmp_path / "memory.store")
    with pytest.raises(KeyboardInterrupt):
        copy_store(full, target, Stop(20))
    named = tmp_path / "named.store"
    named.write_text(target.read_text(encoding="utf-8").strip() + ".unfinished", encoding="utf-8")

    def copy_to_it() -> None:
        copy_store(full, named, quiet)

    for call in (lambda: Database.open(named), lambda: Database.open(named, create=False), copy_to_it):
        with pytest.raises(SpeckitError, match=r"E030 .* names that end with \.unfinished"):
            call()
    copy_store(full, target, quiet)


@pytest.mark.requirement("M14.copied")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_number_of_what_was_deleted_is_not_given_again_by_a_copy(full: Path, tmp_path: Path, engine: str) -> None:
    source, target = link_at(tmp_path / "source.store"), tmp_path / "target.db"
    copy_store(full, source, quiet)
    if engine == "postgres":
        link_at(target)

    def add(store: Path) -> int:
        with Database.open(store) as database, database.write() as txn:
            into = "INSERT INTO edge_history (source_id, target_id, relation, changed_at, changed_by, why) "
            return int(value(txn.connection, into + "VALUES (1, 2, 'caused', 1.0, 'manual', 'x') RETURNING id"))

    last = add(source)
    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, Stop(len(derived().tables)))
    with Database.open(source) as database, database.write() as txn:
        txn.connection.execute("DELETE FROM edge_history")
    copy_store(source, target, quiet)
    assert add(target) == add(source) == last + 1


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
    assert evaluated(back) == evaluated(full)


@pytest.mark.requirement("M14.copied")
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_copy_that_another_began_has_no_records_of_its_own(
    full: Path, tmp_path: Path, engine: str, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    target, other = tmp_path / "memory.db", tmp_path / "other" / "memory.db"
    if engine == "postgres":
        link_at(target)
    Database.open(other).close()
    if recorded:
        record_everything(evaluation_file(other), "of the other one")

    with monkeypatch.context() as patched:
        patched.setattr(store_copy, "_finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            copy_store(full, target, quiet)
    copy_store(other, target, quiet)

    if recorded:
        assert evaluated(target) == evaluated(other)
    else:
        found = evaluated(target)
        assert [name for name in found if found[name]] == ["meta"]
        assert found["meta"] != evaluated(full)["meta"]
        record_everything(evaluation_file(target), "new")


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
def test_a_copy_uses_the_segment_of_its_source(tmp_path: Path) -> None:
    path, back = tmp_path / "memory.db", tmp_path / "back.db"
    there = link_at(tmp_path / "memory.store")
    with Memory.open(path, root=tmp_path, environ={}) as memory:
        memory.index_documents([Source(f"{number}.md", f"# Note {number}\n\nText.\n") for number in range(FEWEST)])
        memory.lifecycle.write_segment()
    for source, target in ((path, there), (there, back)):
        copy_store(source, target, quiet)
        with Database.open(source) as origin, Database.open(target) as copy:
            used, copied = (SegmentStore(database).status() for database in (origin, copy))
        assert (copied.behind, copied.finding) == (0, None)
        assert copied.trusted is not None
        assert used.trusted == copied.trusted._replace(name=used.trusted.name if used.trusted else "")


@pytest.mark.requirement("M14.copied")
@pytest.mark.parametrize(("index", "other"), [("memory_fts", "written"), ("surface_fts", "analysed")])
def test_two_words_that_changed_places_are_found(
    full: Path, tmp_path: Path, index: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange(copy: Database, _target: Path) -> None:
        connection: Any = copy.reader()
        of_one = f"FROM postings WHERE term <> '' AND {other} IS NULL GROUP BY term HAVING count(*) = 1"
        of_two = f"SELECT min(term), memory FROM (SELECT term, min(memory_id) AS memory {of_one}) AS t GROUP BY memory"
        (word, memory), (word_2, memory_2) = connection.fetch(f"{of_two} ORDER BY memory LIMIT 2", []).rows
        for of_word, its_memory in ((word, memory_2), (word_2, memory)):
            connection.fetch("UPDATE postings SET memory_id = $2 WHERE term = $1", [of_word, its_memory])
        raise KeyboardInterrupt

    target = link_at(tmp_path / "memory.store")
    with monkeypatch.context() as patched:
        patched.setattr(store_copy, "_finish", exchange)
        with pytest.raises(KeyboardInterrupt):
            copy_store(full, target, quiet)
    with pytest.raises(SpeckitError, match=f"E024 the copy differs from .* in {index}"):
        copy_store(full, target, quiet)


@pytest.mark.requirement("M14.copied")
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("engine", ["sqlite", "postgres", "another workspace"])
def test_a_killed_copy_continues(full: Path, tmp_path: Path, engine: str) -> None:
    root, env = full.parent, environment(full.parent)
    source = str(full)
    if engine != "sqlite":  # every run that is killed finds the schema there, and passes the same points
        link = link_at(root / "source.store").read_text(encoding="utf-8").strip()
        copy_store(full, root / "source.store", quiet)
        source = link if engine == "another workspace" else source

    def command(name: str) -> list[str]:
        place = str(root / f"{name}.db") if engine == "sqlite" else f"{server()}&workspace={tmp_path.name}{name}"
        return ["store", "copy", source, place]

    passed = points(root, command("whole"), env)
    for number, at in enumerate(spread(passed - 20, 2 if source != str(full) else 4, first=passed // 4)):
        name = f"at{number}"
        assert killed(root, command(name), env, at)
        assert not killed(root, command(name), env, 10 * passed)
        copied, back = root / f"{name}.db", tmp_path / f"{name}.db"
        if engine != "sqlite":
            copied.write_text(command(name)[-1], encoding="utf-8")
        copy_store(copied, back, quiet)
        assert (plain(back), places(back)) == (plain(full), places(full))
