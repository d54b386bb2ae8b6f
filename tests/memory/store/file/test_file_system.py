from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.file import file_system, opening
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.file_system import FileSystem, file_system_of

Mounted = Callable[[str, Path | str], None]


@pytest.fixture
def mounted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Mounted:
    """Adds a line to a mount table of its own, which is read in place of the system's."""
    table = tmp_path_factory.mktemp("proc") / "mountinfo"
    table.write_text("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", encoding="utf-8")
    monkeypatch.setattr(file_system, "MOUNT_TABLE", table)
    monkeypatch.setattr(opening, "_warned", set())

    def add(kind: str, place: Path | str) -> None:
        escaped = str(place).replace(" ", r"\040")
        with table.open("a", encoding="utf-8") as file:
            file.write(f"40 22 0:50 / {escaped} rw,nosuid shared:2 master:1 - {kind} server:/export rw,vers=4.2\n")

    return add


def journal(path: Path) -> str:
    with closing(apsw.Connection(str(path))) as connection:
        return str(connection.pragma("journal_mode"))


@pytest.mark.parametrize(
    ("kind", "shares"),
    [
        ("ext4", True), ("btrfs", True), ("overlay", True), ("tmpfs", True), ("fuseblk", True),
        ("fuse.fuse-overlayfs", True), ("", True), ("nfs", False), ("nfs4", False), ("cifs", False), ("smb3", False),
        ("9p", False), ("virtiofs", False), ("fuse", False), ("fuse.sshfs", False), ("fuse.glusterfs", False),
        ("CIFS", False), ("macfuse", False),
    ],
)  # fmt: skip
def test_network_and_host_file_systems_share_no_memory(kind: str, shares: bool) -> None:
    assert FileSystem(kind).shares_memory is shares


def test_the_deepest_mount_above_a_path_and_the_last_of_one_place_holds(mounted: Mounted, tmp_path: Path) -> None:
    inner = tmp_path / "with blank" / "store"
    mounted("nfs4", tmp_path)
    mounted("xfs", tmp_path / "with blank")
    mounted("9p", tmp_path / "with blan")

    assert file_system_of(tmp_path / "missing" / "memory.db") == FileSystem("nfs4", str(tmp_path))
    assert file_system_of(inner) == FileSystem("xfs", str(tmp_path / "with blank"))
    mounted("virtiofs", tmp_path / "with blank")
    assert str(file_system_of(inner)) == f"virtiofs at {tmp_path / 'with blank'}"
    assert file_system_of(Path("/elsewhere")) == FileSystem("ext4", "/")


def test_a_link_is_followed_to_the_file_system_of_the_store(mounted: Mounted, tmp_path: Path) -> None:
    mounted("nfs", tmp_path / "far")
    (tmp_path / "near").symlink_to(tmp_path / "far")

    assert file_system_of(tmp_path / "near" / "memory.db").kind == "nfs"


@pytest.mark.parametrize("table", ["", "no mount table at all\n", "1 2 3 - x\n", None])
def test_a_table_that_tells_nothing_changes_nothing(
    table: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "mountinfo"
    monkeypatch.setattr(file_system, "MOUNT_TABLE", place)
    if table is not None:
        place.write_text(table, encoding="utf-8")

    assert file_system_of(tmp_path) == FileSystem("")


def test_macos_is_asked_by_its_own_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def statfs(path: bytes, buffer: ctypes.Array[ctypes.c_char]) -> int:
        buffer[72:77] = [b"s", b"m", b"b", b"f", b"s"]
        return -1 if path.endswith(b"missing") else 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(statfs=statfs))

    assert file_system_of(tmp_path / "missing") == FileSystem("smbfs")


@pytest.mark.requirement("M1.settings", "M1.journal")
@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "virtiofs", "fuse.sshfs"])
def test_a_new_store_on_a_network_file_system_has_a_rollback_journal_and_full_synchronisation(
    kind: str, mounted: Mounted, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mounted(kind, tmp_path)
    path = tmp_path / "memory.db"

    with caplog.at_level(logging.WARNING), Database.open(path) as database, Database.open(path) as other:
        with database.write() as txn:
            txn.connection.execute("INSERT INTO meta VALUES ('one', '1')")
        with other.write() as txn:
            txn.connection.execute("INSERT INTO meta VALUES ('two', '2')")
        assert database.latest() == 0
        connection = database.reader()
        assert connection.execute("SELECT count(*) FROM meta WHERE key IN ('one', 'two')").get == 2
        assert (connection.pragma("journal_mode"), connection.pragma("synchronous")) == ("delete", 2)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["memory.db"]
    assert [f"{kind} at {tmp_path}" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.requirement("M1.journal")
def test_a_store_in_wal_mode_that_was_moved_to_one_leaves_it_before_anything_is_read(
    mounted: Mounted, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    with Database.open(path) as database, database.write() as txn:
        txn.connection.execute("INSERT INTO meta VALUES ('kept', '1')")
    EvaluationDatabase.open(tmp_path / "evaluation.db").close()
    assert (journal(path), journal(tmp_path / "evaluation.db")) == ("wal", "wal")
    mounted("nfs4", tmp_path)

    with Database.open(path) as database:
        assert database.reader().execute("SELECT value FROM meta WHERE key = 'kept'").get == "1"
        assert list(tmp_path.glob("*-shm")) == []
    EvaluationDatabase.open(tmp_path / "evaluation.db").close()

    assert (journal(path), journal(tmp_path / "evaluation.db")) == ("delete", "delete")


@pytest.mark.requirement("M1.journal")
def test_a_store_that_another_process_has_open_in_wal_mode_is_busy_and_unharmed(
    mounted: Mounted, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    with Database.open(path) as first:
        mounted("nfs4", tmp_path)
        with pytest.raises(SpeckitError, match="E022"):
            Database.open(path, busy_timeout_ms=1)
        assert first.check() == []


@pytest.mark.requirement("M1.journal")
def test_back_on_a_local_disk_it_keeps_a_log_again(mounted: Mounted, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    mounted("nfs4", tmp_path)
    Database.open(path).close()
    mounted("ext4", tmp_path)
    Database.open(path).close()

    assert journal(path) == "wal"
