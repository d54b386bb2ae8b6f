"""Writers of segments: refused, two at a time, and beside readers. Real processes where it matters."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import apsw
import numpy as np
import pytest
from postgres_server import link_at
from storing.segments import filled, segment_of, small_build

from speckit_memory.config.files.file_lock import locked
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_files import segment_store
from speckit_memory.memory.store.segment_files.container import FileWriter
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore, TrustedSegment, folder_of, last_change
from speckit_memory.memory.store.segment_writing import writing
from speckit_memory.memory.store.segment_writing.diagnosis import findings
from speckit_memory.memory.store.writing import writer

ROOT = Path(__file__).parents[4]
KEYS = [f"notes/{number}" for number in range(segment_store.FEWEST)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as database:
        filled(database, KEYS)
        yield database


def kinds(database: Database) -> list[str]:
    return [found.kind for found in findings(database).findings]


def names(store: Database) -> list[str]:
    return sorted(file.name for file in folder_of(store.path).iterdir() if file.name != ".gitignore")


def test_the_one_before_goes_when_another_is_trusted(store: Database) -> None:
    first = writing.write(store, small_build)
    second = writing.write(store, small_build, only_if_due=False)

    assert first and second and first.name != second.name
    assert names(store) == [second.name, second.name + ".stamp"]


def test_one_that_is_near_enough_is_not_written_again(store: Database) -> None:
    writing.write(store, small_build)
    before = segment_of(store.path)

    assert writing.write(store, small_build) is None
    assert segment_of(store.path) == before


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)),  # as a file system of the network has it
        MemoryError(),
        ValueError("odd"),
    ],
)
def test_a_writer_that_fails_leaves_the_one_before_and_says_why(store: Database, error: Exception) -> None:
    writing.write(store, small_build)
    before = names(store)

    def failing(connection: apsw.Connection, path: Path) -> TrustedSegment:
        small_build(connection, path)
        raise error

    with pytest.raises(SpeckitError, match="E029"):
        writing.write(store, failing, only_if_due=False)
    assert (names(store), kinds(store)) == (before, ["failed"])
    why = str(error.strerror) if isinstance(error, OSError) else type(error).__name__
    with Database.open(store.path) as other:  # what one process could not do, another tells of
        assert why in findings(other).findings[0].detail

    assert writing.write(store, small_build, only_if_due=False) is not None
    assert kinds(store) == []


def test_what_cannot_be_noted_in_the_store_is_told_by_the_process_that_failed(store: Database) -> None:
    def failing(connection: apsw.Connection, path: Path) -> TrustedSegment:
        raise OSError(errno.EROFS, "Read-only file system")

    with Database.open(store.path) as other, other.write(), pytest.raises(SpeckitError, match="E029"):
        writing.write(store, failing)

    assert kinds(store) == ["missing", "failed"]
    assert writing.write(store, small_build) is not None
    assert kinds(store) == []


def test_the_last_room_on_a_disk_is_left_to_the_store(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    before = writing.write(store, small_build)
    assert before
    usage = shutil.disk_usage(store.path)
    with monkeypatch.context() as nearly_full:
        nearly_full.setattr(shutil, "disk_usage", lambda _: usage._replace(free=writing.LEAST_LEFT))
        with pytest.raises(SpeckitError, match=r"E029.* MB are free on the disk; .* are left to the store"):
            writing.write(store, small_build, only_if_due=False)
        assert names(store) == [before.name, before.name + ".stamp"]
        assert "are free on the disk" in findings(store).findings[0].detail

    assert writing.write(store, small_build, only_if_due=False)
    assert kinds(store) == []


def test_the_room_for_a_segment_of_a_store_on_a_server_is_told_by_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database.open(link_at(tmp_path / "store.db")) as store:
        filled(store, KEYS)
        size = store.reader().pragma("page_count") * store.reader().pragma("page_size")
        enough = shutil.disk_usage(tmp_path)._replace(free=int(size * writing.SHARE_OF_STORE) + writing.LEAST_LEFT)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: enough._replace(free=enough.free - 1))
        with pytest.raises(SpeckitError, match="E029"):
            writing.write(store, small_build, only_if_due=False)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: enough)
        assert writing.write(store, small_build, only_if_due=False)


def test_who_looks_for_a_writer_keeps_none_from_writing(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    writing.write(store, small_build)
    with ExitStack() as look, monkeypatch.context() as waiting:
        look.enter_context(locked(folder_of(store.path) / writing.LOCK, patience=0.0))
        waiting.setattr(time, "sleep", lambda _: look.close())
        assert writing.write(store, small_build, only_if_due=False)


def test_the_log_of_a_store_counts_wherever_a_link_leads(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = tmp_path / "elsewhere" / "linked.db"
    linked.parent.mkdir()
    linked.symlink_to(store.path)
    assert store.path.with_name(f"{store.path.name}-wal").stat().st_size
    enough_without_log = int(store.path.stat().st_size * writing.SHARE_OF_STORE) + writing.LEAST_LEFT
    usage = shutil.disk_usage(store.path)._replace(free=enough_without_log)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with Database.open(linked) as database, pytest.raises(SpeckitError, match="E029"):
        writing.write(database, small_build, only_if_due=False)


@pytest.mark.usefixtures("modes_respected")
def test_a_folder_that_may_only_be_read_is_named_and_the_segment_in_it_used(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as store:
        filled(store, KEYS)
        writing.write(store, small_build)
        folder = folder_of(store.path)
        folder.chmod(0o500)
        assert SegmentStore(store).usable() is not None
        with pytest.raises(SpeckitError, match="E029"):
            writing.write(store, small_build, only_if_due=False)

        found = findings(store).findings

        assert [finding.kind for finding in found] == ["failed", "failed"]
        assert f"no permission to write to {folder}" in found[0].detail
        assert "Permission denied" in found[1].detail
        folder.chmod(0o700)
        assert writing.write(store, small_build, only_if_due=False) is not None
        assert kinds(store) == []


def test_two_writers_do_not_work_at_once_and_nobody_waits(store: Database) -> None:
    seen: list[object] = []

    def building(connection: apsw.Connection, path: Path) -> TrustedSegment:
        seen.append(writing.write(store, small_build, only_if_due=False))  # another thread of this process
        seen.append(writing.being_written(store))
        seen.append(kinds(store))
        return small_build(connection, path)

    assert writing.write(store, building) is not None
    assert seen == [None, True, ["written"]]

    with locked(folder_of(store.path) / writing.LOCK):  # another process
        assert writing.write(store, small_build, only_if_due=False) is None


def test_who_gives_up_leaves_nothing_and_no_complaint(store: Database) -> None:
    def building(connection: apsw.Connection, path: Path) -> TrustedSegment:
        raise GivenUpError

    with pytest.raises(GivenUpError):
        writing.write(store, building)

    assert (names(store), kinds(store)) == ([], ["missing"])


def test_a_store_that_was_set_back_meanwhile_does_not_trust_it(store: Database) -> None:
    def building(connection: apsw.Connection, path: Path) -> TrustedSegment:
        built = small_build(connection, path)
        with apsw.Connection(str(store.path)) as other:  # a restored backup that went on to the same number
            other.execute("UPDATE changes SET token = token + 1")
        return built

    with pytest.raises(SpeckitError):
        writing.write(store, building)

    assert names(store) == []


def test_what_was_forgotten_while_it_was_written_is_in_no_file_that_is_trusted(store: Database) -> None:
    before = writing.write(store, small_build)

    def overtaken(connection: apsw.Connection, path: Path) -> TrustedSegment:
        built = small_build(connection, path)
        with Database.open(store.path) as other:
            with other.write() as txn:
                writer.delete_memories(txn, [1])
            filled(other, ["more"])
            SegmentStore(other).forget()
        return built

    assert before is not None
    assert writing.write(store, overtaken, only_if_due=False) is None
    assert (names(store), kinds(store)) == ([before.name, before.name + ".stamp"], [])
    after = writing.write(store, small_build)  # near enough, but for what it holds

    assert after is not None
    assert KEYS[0].encode() not in folder_of(store.path).joinpath(after.name).read_bytes().split(b"\n")
    assert writing.write(store, small_build) is None


def test_it_goes_where_few_memories_are_left_unless_somebody_writes(store: Database) -> None:
    before = writing.write(store, small_build)
    assert before is not None
    unfinished = folder_of(store.path) / ".0123456789abcdef.seg.01234567"
    unfinished.write_bytes(b"of another writer")
    with store.write() as txn:
        writer.delete_memories(txn, [1])
    SegmentStore(store).forget()
    with locked(folder_of(store.path) / writing.LOCK):
        assert writing.write(store, small_build) is None
        assert {before.name, unfinished.name} < set(names(store))

    assert writing.write(store, small_build) is None
    assert names(store) == []


@pytest.mark.parametrize("why", ["behind", "missing", "torn"])
def test_it_goes_where_another_would_be_due_and_few_memories_are_left(
    store: Database, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = writing.write(store, small_build)
    assert before is not None
    with store.write() as txn:
        writer.delete_memories(txn, [1])
    assert writing.write(store, small_build) is None
    assert before.name in names(store)  # it is of use as long as it is near enough
    file = folder_of(store.path) / before.name
    if why == "behind":
        monkeypatch.setattr(segment_store, "most_behind", lambda _: 0)
    elif why == "missing":
        file.unlink()
    else:
        file.chmod(0o600)
        file.write_bytes(file.read_bytes()[:-1])
    assert kinds(store) == [why]

    assert writing.write(store, small_build) is None
    assert (names(store), kinds(store)) == ([], [])


def test_what_others_keep_in_the_folder_stays(store: Database) -> None:
    writing.write(store, small_build)
    mine = folder_of(store.path) / "mine.txt"
    mine.write_text("x", encoding="utf-8")

    writing.write(store, small_build, only_if_due=False)

    assert (mine.exists(), kinds(store)) == (True, [])


WRITER = """
import sys, time
from pathlib import Path
from storing.segments import filled, small_build
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_writing import writing
store, name, until = Path(sys.argv[1]), sys.argv[2], time.monotonic() + float(sys.argv[3])
print("ready", flush=True)
with Database.open(store) as database:
    turn = 0
    while time.monotonic() < until:
        filled(database, [f"{name}/{turn}"])
        writing.write(database, small_build, only_if_due=False)
        turn += 1
print("done", turn, flush=True)
"""
READER = """
import sys, time
from pathlib import Path
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.tables import changes
store, until = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2])
found = missed = 0
print("ready", flush=True)
with Database.open(store) as database:
    while time.monotonic() < until:
        with database.snapshot_read() as connection:
            segment = SegmentStore(database).usable()
            if segment is None:
                missed += 1
                continue
            _, later = changes.since(connection, segment.about["sequence"])
            ids = set(segment.array("ids").tolist()) | {memory for memory, kind in later if kind == "put"}
            keys = bytes(segment.array("keys")).decode().split("\\n")
            assert len(keys) == len(segment.array("ids"))
            assert ids == {row[0] for row in connection.execute("SELECT id FROM memories")}
            found += 1
print("done", found, missed, flush=True)
"""


def begin(script: str, *arguments: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests" / "support"), "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.usefixtures("processes")
def test_what_readers_see_beside_writers_is_a_state_that_was(store: Database) -> None:
    seconds = float(os.environ.get("SEGMENT_SOAK_SECONDS", "4"))
    writers = [begin(WRITER, store.path, name, seconds) for name in ("one", "two")]
    readers = [begin(READER, store.path, seconds) for _ in range(4)]
    ended = [process.communicate() for process in (*writers, *readers)]

    assert [process.returncode for process in (*writers, *readers)] == [0] * 6, [error for _, error in ended]
    counts = [list(map(int, out.split()[1:])) for out, _ in ended]
    assert all(turns for (turns,) in counts[:2])
    assert all(found > missed for found, missed in counts[2:])


SHARER = """
import sys
from pathlib import Path
import numpy as np
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
store = Path(sys.argv[1])
with Database.open(store) as database:
    segment = SegmentStore(database).usable()
    print("ready", flush=True)
    sys.stdin.readline()  # until the other one is there, too
    print(int(segment.array("many").sum()), flush=True)
    sys.stdin.readline()
    kinds, inside = {}, False
    for line in open("/proc/self/smaps"):
        name, _, rest = line.partition(":")
        if "-" in name.split(" ")[0] and " " in name:
            inside = ".seg" in line
        elif inside and rest.strip().endswith("kB"):
            kinds[name] = kinds.get(name, 0) + int(rest.split()[0])
    print(kinds["Rss"], kinds["Private_Clean"] + kinds["Private_Dirty"], flush=True)
    sys.stdin.readline()  # a page that only one process maps is private: none ends before both have told
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/smaps tells it")
@pytest.mark.usefixtures("processes")
def test_two_processes_share_the_pages_of_a_segment(store: Database) -> None:
    count = 2_000_000

    def building(connection: apsw.Connection, path: Path) -> TrustedSegment:
        with FileWriter(path) as file:
            file.add("many", np.ones(count))
            sequence, token = last_change(connection)
            digest, size = file.finish({"sequence": sequence})
        return TrustedSegment(path.name, digest, size, sequence, token)

    assert writing.write(store, building) is not None
    with begin(SHARER, store.path) as one, begin(SHARER, store.path) as other:
        processes = (one, other)
        told = [[line_after(process) for process in processes] for _ in range(2)]
        for process in processes:
            process.communicate()

    assert told[0] == [str(count)] * 2
    for line in told[1]:
        resident, private = map(int, line.split())
        assert resident * 1024 >= 8 * count
        assert private * 1024 < 8 * count / 100


def line_after(process: subprocess.Popen[str]) -> str:
    """What a process says when it is told to go on."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()
