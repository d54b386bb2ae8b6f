"""The layer that crashes actions finds what a kill would break, and lets nothing change a file after the crash."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from crashing import crash_at, every_point
from files_state import found_in, with_log

from speckit_memory.config.files.written_file import written

OLD, NEW = "old\n" * 3, "new\n" * 3


def in_place(file: Path) -> None:
    with file.open("w") as stream:
        stream.write(NEW)


def by_descriptor(file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    os.write(descriptor, NEW[:4].encode())
    os.write(descriptor, NEW[4:].encode())
    os.close(descriptor)


def by_copy(file: Path) -> None:
    shutil.copyfile(file.with_name("new"), file)


def by_replacement(file: Path) -> None:
    with written(file) as stream:
        stream.write(NEW)


@pytest.mark.parametrize("write", [in_place, by_descriptor, by_copy, by_replacement])
def test_a_file_that_is_written_in_place_is_seen_torn(tmp_path: Path, write: Callable[[Path], None]) -> None:
    origin, file = tmp_path / "origin", tmp_path / "root" / "file"
    origin.mkdir()
    (origin / "file").write_text(OLD)
    (origin / "new").write_text(NEW)
    seen = {file.read_text() for _ in every_point(origin, file.parent, lambda: write(file))}
    assert file.read_text() == NEW
    assert (seen <= {OLD, NEW}) == (write is by_replacement)


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("whole", [False, True])
def test_two_transactions_are_seen_apart_and_one_is_not(tmp_path: Path, journal: str, whole: bool) -> None:
    origin, store = tmp_path / "origin", tmp_path / "root" / "store.db"
    origin.mkdir()
    with closing(apsw.Connection(str(origin / "store.db"))) as connection:
        assert connection.execute(f"PRAGMA journal_mode = {journal}").get == journal
        connection.execute("CREATE TABLE t (n)")

    def insert() -> None:
        with closing(apsw.Connection(str(store))) as connection:
            middle = "" if whole else "COMMIT; BEGIN;"
            connection.execute(f"BEGIN; INSERT INTO t VALUES (1); {middle} INSERT INTO t VALUES (2); COMMIT")

    def stored() -> int:
        with closing(apsw.Connection(str(store))) as connection:
            return int(connection.execute("SELECT count(*) FROM t").get)

    states = {stored() for _ in every_point(origin, store.parent, insert)}
    assert states | {stored()} == ({0, 2} if whole else {0, 1, 2})


def test_what_a_log_adds_to_a_file_is_what_sqlite_makes_of_it(tmp_path: Path) -> None:
    """Two transactions count, and neither the one before the last checkpoint twice nor one that does not end."""
    store, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    with closing(apsw.Connection(str(store))) as connection, closing(apsw.Connection(str(store))) as reader:
        list(connection.execute("PRAGMA journal_mode = wal; PRAGMA cache_size = 2; CREATE TABLE t (n, text)"))
        numbers = ", ".join(map(str, range(1, 41)))
        filling = f"INSERT INTO t SELECT value, hex(randomblob(900)) FROM json_each('[{numbers}]')"
        list(connection.execute(f"{filling}; PRAGMA wal_checkpoint(RESTART); {filling}; DELETE FROM t WHERE n > 30"))
        assert reader.execute("SELECT count(*) FROM t").get == 60
        before = log.stat().st_size
        connection.execute(f"BEGIN; {filling}")  # more than the cache holds: it is in the log, without an end
        length, found = log.stat().st_size, found_in(tmp_path)
        assert length > before
        made = with_log(store.read_bytes(), log.read_bytes())
        connection.execute("ROLLBACK")
        assert (log.stat().st_size, found_in(tmp_path)) == (length, found)
        list(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        assert log.stat().st_size == 0
        assert (store.read_bytes(), found_in(tmp_path)) == (made, found)
        connection.execute("DELETE FROM t WHERE n = 1")
        assert found_in(tmp_path) != found


def test_nothing_changes_a_file_after_the_crash(tmp_path: Path) -> None:
    gone, unfinished = tmp_path / "gone", tmp_path / "unfinished"
    gone.write_text(OLD)
    started = threading.Event()

    def go_on() -> None:
        started.wait()
        with suppress(OSError):
            (tmp_path / "by a thread").mkdir()

    with crash_at(tmp_path, 2) as crash:
        threading.Thread(target=go_on).start()
        stream = unfinished.open("w")
        stream.write(NEW)
        try:
            gone.unlink()
        finally:
            started.set()
            with suppress(OSError):
                unfinished.unlink()
    assert crash.operation == "os.remove gone"
    stream.close()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"gone": OLD, "unfinished": ""}


def test_an_error_before_the_crash_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), crash_at(tmp_path, 2):
        (tmp_path / "missing").unlink()
