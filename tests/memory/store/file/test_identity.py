from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.identity import KEPT, ReplacedError
from speckit_memory.memory.store.tables import changes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with Database.open(path) as database, database.write() as txn:
        changes.record(txn, [1], "put")
    return path


def test_a_checkpoint_by_another_process_is_no_replacement(path: Path) -> None:
    with Database.open(path) as database:
        other = apsw.Connection(str(path))
        for turn in range(3):
            other.execute("INSERT INTO changes (memory_id, kind, token) VALUES (1, 'put', random())")
            other.execute(f"PRAGMA wal_checkpoint({('PASSIVE', 'FULL', 'TRUNCATE')[turn]})").fetchall()
            assert database.latest() == turn + 2
            with database.write() as txn:
                assert changes.latest(txn.connection) == turn + 2
        other.close()


def test_more_changes_than_the_log_keeps_are_a_later_state_all_the_same(path: Path) -> None:
    with Database.open(path) as database, Database.open(path) as other:
        with other.write() as txn:
            changes.record(txn, [1] * (KEPT + 10), "attributes")
        assert database.latest() == KEPT + 11


def test_a_file_written_to_without_sqlite_is_another_state(path: Path) -> None:
    with Database.open(path) as database:
        with path.open("r+b") as file:
            file.seek(60)
            file.write(b"\1")
        later = path.stat().st_mtime_ns + 1_000_000_000
        os.utime(path, ns=(later, later))
        with pytest.raises(ReplacedError, match="was overwritten") as caught:
            database.latest()
        assert caught.value.in_place
        with pytest.raises(ReplacedError), database.write():
            pass


def test_a_transaction_that_was_committed_into_a_file_that_is_gone_is_not_acknowledged(path: Path) -> None:
    copy = Path(shutil.copy(path, f"{path}.copy"))

    def write(database: Database) -> None:
        with database.write() as txn:
            changes.record(txn, [2], "put")
            copy.replace(path)

    with Database.open(path) as database:
        with pytest.raises(ReplacedError, match="replaced by another file") as caught:
            write(database)
        assert caught.value.committed
        with pytest.raises(ReplacedError):
            database.reader()


def test_a_transaction_whose_log_was_deleted_is_not_acknowledged(path: Path) -> None:
    def write(database: Database) -> None:
        with database.write() as txn:
            changes.record(txn, [2], "put")
            path.with_name(f"{path.name}-wal").unlink()

    with Database.open(path) as database:
        with pytest.raises(ReplacedError, match="lost its write-ahead log") as caught:
            write(database)
        assert caught.value.code == "E026"


def test_a_transaction_that_is_undone_leaves_the_history_as_it_was(path: Path) -> None:
    def undone(database: Database) -> None:
        with database.write() as txn:
            changes.record(txn, [2], "put")
            raise KeyError

    with Database.open(path) as database:
        with pytest.raises(KeyError):
            undone(database)
        assert database.latest() == 1


def test_a_log_left_beside_another_file_is_named_and_one_of_the_same_store_is_not(path: Path) -> None:
    copy = Path(shutil.copy(path, f"{path}.copy"))
    with Database.open(path) as database:
        assert database.left_behind() == ()
        copy.replace(path)
        assert [file.name for file in database.left_behind()] == ["store.db-wal", "store.db-shm"]
        database.replaced()


@pytest.mark.parametrize("emptied", [False, True], ids=["begun anew", "emptied"])
def test_a_log_that_was_empty_and_that_others_filled_and_copied_is_no_replacement(path: Path, emptied: bool) -> None:
    with Database.open(path) as database:
        assert database.latest() == 1
        assert not Path(f"{path}-wal").stat().st_size
        with Database.open(path) as other:
            for _ in range(3):
                with other.write() as txn:
                    changes.record(txn, [1] * 20, "put")
                other.reader().execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if emptied else 'RESTART'})").fetchall()
            if not emptied:
                with other.write() as txn:
                    txn.connection.execute("INSERT INTO meta (key, value) VALUES ('of nobody', '1')")
            assert database.latest() == 61


def test_a_log_that_others_filled_and_copied_without_a_change_of_a_memory_is_no_replacement(path: Path) -> None:
    with Database.open(path) as database:
        assert database.latest() == 1
        with Database.open(path) as other:
            for name in ("one", "two"):
                with other.write() as txn:
                    txn.connection.execute("INSERT INTO meta (key, value) VALUES (?, '1')", (name,))
                if name == "one":
                    other.reader().execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            assert database.latest() == 1


@pytest.mark.parametrize("change", ["VACUUM", "INSERT INTO meta (key, value) VALUES ('of nobody', '1')"])
def test_a_log_that_others_filled_and_emptied_without_a_change_of_a_memory_is_no_replacement(
    path: Path, change: str
) -> None:
    with Database.open(path) as database, closing(apsw.Connection(str(path))) as other:
        for _ in range(2):
            assert database.latest() == 1
            other.execute(change.replace("nobody", os.urandom(4).hex()))
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert database.latest() == 1


def test_a_file_that_is_overwritten_after_others_emptied_its_log_is_another_state(path: Path) -> None:
    copy = path.read_bytes()
    with Database.open(path) as database, closing(apsw.Connection(str(path))) as other:
        other.execute("VACUUM")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert database.latest() == 1
        path.write_bytes(copy)
        later = path.stat().st_mtime_ns + 1_000_000_000
        os.utime(path, ns=(later, later))
        with pytest.raises(ReplacedError, match="was overwritten"):
            database.latest()


def test_a_file_that_is_overwritten_while_its_log_is_empty_is_another_state(path: Path, tmp_path: Path) -> None:
    """A whole copy of an earlier state, of another store, and of one whose history is longer."""
    earlier = shutil.copy(path, tmp_path / "earlier")
    with Database.open(tmp_path / "foreign.db") as foreign, foreign.write() as txn:
        changes.record(txn, [1] * 50, "put")
    with Database.open(path) as database, database.write() as txn:
        changes.record(txn, [2], "put")
    for number, file in enumerate((earlier, tmp_path / "foreign.db")):
        copy = Path(shutil.copy(path, tmp_path / f"store-{number}.db"))
        with Database.open(copy) as database:
            assert database.latest() == 2
            with copy.open("r+b") as written, Path(file).open("rb") as read:
                shutil.copyfileobj(read, written)
            later = copy.stat().st_mtime_ns + 1_000_000_000
            os.utime(copy, ns=(later, later))
            with pytest.raises(ReplacedError):
                database.latest()
