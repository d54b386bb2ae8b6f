from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from answered import refused

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import PROCESS_BYTES, Database
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.opening import require_sqlite
from speckit_memory.memory.store.reading import loading, reader
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]


def refusal(path: Path, *, create: bool = True) -> str:
    """The code with which opening fails."""
    with pytest.raises(SpeckitError) as caught:
        Database.open(path, create=create)
    assert caught.value.problems[0].message
    return caught.value.code


@pytest.fixture
def filled(tmp_path: Path, document: Make) -> Path:
    """The file of a closed store with 200 memories."""
    path = tmp_path / "filled.db"
    with Database.open(path) as database, database.write() as txn:
        for number in range(200):
            writer.put_document(txn, document(f"k{number}", "some words " * 20), None, 1.0, None)
    return path


@pytest.mark.requirement("M1.settings")
def test_a_new_store_has_the_settings_of_the_specification(tmp_path: Path) -> None:
    with Database.open(tmp_path / "new folder" / "sub" / "store.db") as database:
        connection = database.reader()
        names = ("journal_mode", "busy_timeout", "foreign_keys", "cache_size", "synchronous", "temp_store", "mmap_size")
        settings = {name: connection.pragma(name) for name in names}
        assert database.check() == []
    assert settings == {
        "journal_mode": "wal",
        "busy_timeout": 10_000,
        "foreign_keys": 1,
        "cache_size": -65536,
        "synchronous": 1,
        "temp_store": 2,
        "mmap_size": 0,
    }


def test_a_process_keeps_no_more_pages_than_its_bound(tmp_path: Path) -> None:
    with Database.open(tmp_path / "large.db") as database:
        with database.write() as txn:
            txn.connection.execute("CREATE TABLE filler (bytes)")
            # 40 MB
            txn.connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
                "INSERT INTO filler SELECT randomblob(4000) FROM n"
            )
        before = apsw.memory_used()
        assert database.reader().execute("SELECT sum(length(bytes)) FROM filler").fetchall() == [(40_000_000,)]
        assert apsw.memory_used() <= max(before, PROCESS_BYTES) + (1 << 20)


def test_a_missing_file_is_not_made_unless_asked(tmp_path: Path) -> None:
    assert refusal(tmp_path / "sub" / "store.db", create=False) == "E010"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "E014"


def test_a_file_in_the_place_of_a_parent_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert refusal(tmp_path / "file" / "store.db") == "E020"


def test_an_empty_file_becomes_a_store_only_when_one_may_be_made(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    assert refusal(path, create=False) == "E024"
    with Database.open(path) as database:
        assert database.check() == []


@pytest.mark.parametrize("content", ["x", "# A text file\n" * 1000])
def test_a_text_file_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.md"
    path.write_text(content)
    assert refusal(path) == "E024"
    assert path.read_text() == content
    assert [file.name for file in tmp_path.iterdir()] == ["notes.md"]


@pytest.mark.parametrize("setting", ["CREATE TABLE t (a)", "PRAGMA application_id = 7"])
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute(setting)
    other.close()
    before = path.read_bytes()
    assert refusal(path) == "E024"
    assert path.read_bytes() == before


@pytest.mark.parametrize("kept", [20, 100, 4096, 5000, 40_960, -5000, -4096])
def test_a_truncated_store_is_refused(filled: Path, kept: int) -> None:
    content = filled.read_bytes()
    filled.write_bytes(content[:kept])
    assert refusal(filled) == "E024"
    assert filled.read_bytes() == content[:kept]


def test_damage_in_the_middle_is_found_by_the_check(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    filled.write_bytes(content)
    with Database.open(filled) as database:
        assert database.check() != []


def test_what_others_have_written_since_the_words_were_looked_up_is_no_damage(filled: Path, document: Make) -> None:
    with Database.open(filled) as database, Database.open(filled) as other:
        asked = "SELECT count(*) FROM memory_fts WHERE memory_fts MATCH 'words'"
        assert value(database.reader(), asked) == 200
        for number in range(200):  # so often that the segments of the words are merged into others
            with other.write() as txn:
                writer.put_document(txn, document(f"l{number}", "some words " * 20), None, 1.0, None)
        assert database.check() == []


def test_a_store_of_a_later_version_is_refused_and_left_alone(filled: Path) -> None:
    with Database.open(filled) as database, database.write() as txn:
        txn.connection.execute("INSERT INTO migrations VALUES ('9999_of_tomorrow', '2099-01-01T00:00:00Z')")
    before = filled.read_bytes()
    with refused("E025", match="9999_of_tomorrow"):
        Database.open(filled)
    assert filled.read_bytes() == before


@pytest.mark.usefixtures("modes_respected")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Database.open(path).close()
    path.chmod(0o000)
    assert refusal(path) == "E011"


@pytest.mark.usefixtures("modes_respected")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert refusal(tmp_path / "store.db") == "E020"
    assert refusal(tmp_path / "sub" / "store.db") == "E020"
    tmp_path.chmod(0o700)


@pytest.mark.requirement("M1.version")
@pytest.mark.parametrize("version", ["3.40.1", "3.51.2"])
def test_a_sqlite_that_can_damage_files_is_refused(version: str) -> None:
    with refused("E020", match=version):
        require_sqlite(version)
    require_sqlite("3.51.3")
    require_sqlite("4.0.0")


def state(path: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.parent.iterdir()}


def test_opening_and_reading_a_current_store_writes_nothing(filled: Path) -> None:
    before = state(filled)
    stamp = filled.stat().st_mtime_ns
    with Database.open(filled) as database:
        version = database.reader().pragma("data_version")
        with Database.open(filled) as second:
            reader.statistics(second.reader())
            assert (filled.parent / "filled.db-wal").stat().st_size == 0
        assert database.reader().pragma("data_version") == version
    assert state(filled) == before
    assert filled.stat().st_mtime_ns == stamp


def test_an_exception_undoes_the_whole_transaction(database: Database, document: Make) -> None:
    def interrupted() -> None:
        with database.write() as txn:
            writer.put_document(txn, document("k", "a"), None, 1.0, None)
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert loading.load_attributes(database.reader()) == []
    with database.write() as txn:
        assert writer.put_document(txn, document("k", "a"), None, 1.0, None).id == 1


def test_a_write_cannot_be_nested(database: Database) -> None:
    with database.write(), pytest.raises(RuntimeError, match="inside another"), database.write():
        pass
    with database.snapshot_read(), pytest.raises(RuntimeError, match="inside another"), database.write():
        pass


def test_several_reads_of_a_snapshot_see_one_state(database: Database) -> None:
    def change(value: str) -> None:
        with database.write() as txn:
            set_meta(txn, "fact", value)

    with ThreadPoolExecutor(1) as other:
        other.submit(change, "old").result()
        with database.snapshot_read() as connection:
            assert get_meta(connection, "fact") == "old"
            other.submit(change, "new").result()
            with database.snapshot_read() as inner:
                assert get_meta(inner, "fact") == "old"
        assert get_meta(database.reader(), "fact") == "new"


def test_a_reader_is_not_held_up_by_a_writer(database: Database) -> None:
    with database.write() as txn, ThreadPoolExecutor(1) as other:
        set_meta(txn, "fact", "uncommitted")
        assert other.submit(lambda: get_meta(database.reader(), "fact")).result() is None


def test_a_lock_that_stays_taken_is_reported_as_busy(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def code_of_write(database: Database) -> str:
        with pytest.raises(SpeckitError) as caught, database.write():
            pass
        return caught.value.code

    with (
        Database.open(path) as holder,
        Database.open(path, busy_timeout_ms=20) as rival,
        ThreadPoolExecutor(1) as thread,
        holder.write(),
    ):
        assert code_of_write(rival) == "E022"
        with Database.open(path, busy_timeout_ms=20) as third:
            assert thread.submit(code_of_write, third).result() == "E022"


def test_threads_of_one_process_queue_up_to_write(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db", busy_timeout_ms=10_000) as database, ThreadPoolExecutor(8) as threads:

        def increment(_: int) -> None:
            with database.write() as txn:
                set_meta(txn, "count", str(int(get_meta(txn.connection, "count") or 0) + 1))

        list(threads.map(increment, range(200)))
        assert get_meta(database.reader(), "count") == "200"


def test_every_thread_has_a_connection_of_its_own_that_ends_with_it(database: Database) -> None:
    own = database.reader()
    assert database.reader() is own
    others: list[apsw.Connection] = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: others.append(database.reader()))
        thread.start()
        thread.join()
    assert len({id(connection) for connection in (own, *others)}) == 4
    for abandoned in others[:-1]:
        with pytest.raises(apsw.ConnectionClosedError):
            abandoned.pragma("data_version")


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "store.db")
    with ThreadPoolExecutor(1) as other:
        other.submit(database.reader).result()
        database.close()
        database.close()
        for use in (database.reader, database.snapshot_read().__enter__, database.write().__enter__):
            with pytest.raises(SpeckitError, match="has been closed"):
                use()
        with pytest.raises(SpeckitError, match="has been closed"):
            other.submit(database.reader).result()
    assert database.check() == [f"E027 {database.path} has been closed"]
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_a_store_in_use_is_closed_once_the_query_has_ended(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "store.db")
    started, released = threading.Event(), threading.Event()

    def hold(*_: object) -> int:
        started.set()
        return int(released.wait())

    def query() -> None:
        connection = database.reader()
        connection.create_scalar_function("hold", hold, 0)
        connection.execute("SELECT hold() UNION ALL SELECT 1").fetchall()

    with ThreadPoolExecutor(1, "worker") as other:
        running = other.submit(query)
        started.wait()
        with refused("E022", match="in use by worker"):
            database.close()
        released.set()
        running.result()
        database.close()
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("DELETE FROM memory_fts WHERE rowid = 3", "memory 3 has no full-text row"),
        ("INSERT INTO memory_fts (rowid, title) VALUES (900, 'x')", "the full-text row 900 belongs to no memory"),
        ("DELETE FROM surface_fts WHERE rowid = 3", "memory 3 has no row of its words as written"),
        ("INSERT INTO surface_fts (rowid, title) VALUES (900, 'x')", "the row 900 of words as written belongs to no"),
        ("DELETE FROM texts WHERE memory_id = 3", "memory 3 has no texts"),
        ("DELETE FROM token_counts WHERE memory_id = 3", "the tokens of memory 3 are not counted"),
        ("UPDATE token_counts SET path = 9 WHERE memory_id = 3", "memory 3 does not have the number of tokens it says"),
        (
            "UPDATE token_counts SET passages = x'00000009' WHERE memory_id = 3",
            "memory 3 does not have the number of tokens it says",
        ),
        ("UPDATE memories SET chunk_count = 2 WHERE id = 3", "memory 3 does not have the number of chunks it says"),
        (
            "UPDATE memories SET embedding_status = 'done' WHERE id = 3",
            "memory 3 does not have the embedding status of its chunks",
        ),
        ("UPDATE chunks SET vector = 'stored' WHERE id = 3", "chunk 3 should have a vector"),
        ("UPDATE id_sequence SET next = 200", "id 200 has not been drawn from the sequence"),
        ("PRAGMA foreign_keys = OFF; DELETE FROM memories WHERE id = 3", "row 3 of chunks points to a missing row"),
    ],
)
def test_the_check_names_what_does_not_fit(filled: Path, damage: str, complaint: str) -> None:
    with Database.open(filled) as database:
        assert database.check() == []
        database.reader().execute(damage)
        found = database.check()
    assert any(line.startswith(complaint) for line in found), found
