"""A store named where none can be, and who may read one."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tally import Tally

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, Migration, migrate
from speckit_memory.server.commands.cli import run
from tests.server.doors import call

COMMANDS = (
    ("index", "docs"),
    ("index", "docs", "--dry-run"),
    ("index", "docs", "--forget"),
    ("search", "marmots"),
    ("pipeline", "plan", "marmots"),
    ("doctor",),
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "workspace"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "one.md").write_text("# One\n\nAbout marmots.\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("SPECKIT_ROOT", str(root))
    monkeypatch.delenv("SPECKIT_DB", raising=False)
    return root


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)

    def to(mask: int) -> None:
        os.umask(mask)

    yield to
    os.umask(before)


def below_a_file(root: Path) -> str:
    (root / "file").write_text("x")
    return str(root / "file" / "sub" / "memory.db")


def a_dangling_link(root: Path) -> str:
    (root / "link.db").symlink_to(root / "gone" / "memory.db")
    return str(root / "link.db")


def a_loop(root: Path) -> str:
    (root / "loop.db").symlink_to(root / "loop.db")
    return str(root / "loop.db")


def a_pipe(root: Path) -> str:
    os.mkfifo(root / "pipe.db")
    return str(root / "pipe.db")


PLACES: dict[str, Callable[[Path], str]] = {
    "below a file": below_a_file,
    "in a file system of the kernel": lambda _: "/proc/memory.db",
    "below a process": lambda _: "/proc/self/fd/memory.db",
    "a device": lambda _: "/dev/full",
    "nothing": lambda _: "/dev/null",
    "a long name": lambda root: str(root / ("x" * 300 + ".db")),
    "a long path": lambda root: str(root / "/".join(["x" * 200] * 30) / "memory.db"),
    "a dangling link": a_dangling_link,
    "a loop": a_loop,
    "a pipe": a_pipe,
    "a folder": lambda root: str(root / "docs"),
    "the root": lambda _: "/",
    "an empty name": lambda _: "",
    "the home of nobody": lambda _: "~nouser4711/memory.db",
    "a text": lambda root: str(root / "docs" / "one.md"),
}


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    status = run((*arguments, "--json"))
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("by", ["option", "variable"])
@pytest.mark.parametrize("place", PLACES)
def test_a_store_where_none_can_be_is_a_coded_error_of_every_command(
    root: Path, place: str, by: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    db = PLACES[place](root)
    if by == "variable":
        monkeypatch.setenv("SPECKIT_DB", db or "docs")  # an empty variable is none
    before = sorted(root.rglob("*"))
    for command in COMMANDS:
        status, document = outcome(capsys, *command, *(("--db", db) if by == "option" else ()))
        codes = {error["code"] for error in document.get("errors", [document.get("error", {"code": ""})])}
        assert "E199" not in codes, (command, document)
        if command == ("index", "docs", "--dry-run") and status == 0:
            continue  # nothing would be written, and nothing was
        if command == ("doctor",):
            # where nothing is, no store is missed
            assert status or place in ("a dangling link", "in a file system of the kernel", "below a process")
            assert "E199" not in json.dumps(document)
        else:
            assert status in (1, 2), (command, document)
            assert codes <= {"E010", "E011", "E014", "E020", "E021", "E024"}, (command, document)
        tally.tried()
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    "name", [":memory:", "file::memory:", "file:one.db?mode=memory", "-db", "a?b#c%41.db", "日本.db"]
)
def test_a_store_is_a_file_whatever_its_name_means_to_sqlite(
    root: Path, name: str, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    assert outcome(capsys, "index", "docs", "--db", name)[0] == 0
    assert (root / name).read_bytes().startswith(b"SQLite format 3")
    status, document = outcome(capsys, "search", "marmots", "--db", name)
    assert (status, [row["key"] for row in document["results"]]) == (0, ["docs/one.md"])
    tally.tried()


@pytest.mark.parametrize("place", ["below a file", "a loop", "a pipe", "a long name", "the home of nobody", "a device"])
def test_a_server_says_before_it_serves_that_its_store_cannot_be(root: Path, place: str, tally: Tally) -> None:
    ran = call(root, ["serve"], {"SPECKIT_DB": PLACES[place](root)})
    assert ran.status in (1, 2)
    assert any(code in ran.err for code in ("E014", "E020", "E024"))
    assert "E199" not in ran.err
    tally.tried()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o177])
def test_a_new_store_is_for_its_owner_alone_whatever_the_umask_allows(
    root: Path, umask: Callable[[int], None], mask: int, tally: Tally
) -> None:
    umask(mask & 0o077)
    path = root / ".speckit" / "memory.db"
    with Database.open(path) as database:
        with database.write() as txn:
            txn.connection.execute("INSERT INTO meta VALUES ('a', 'b')")
        for part in ("", "-wal", "-shm"):
            assert mode(path.with_name(f"{path.name}{part}")) == 0o600
            tally.tried()
    assert mode(path.parent) == 0o700


def test_the_modes_of_a_store_that_is_there_are_left_and_no_copy_is_looser(
    root: Path, umask: Callable[[int], None], tally: Tally
) -> None:
    umask(0)
    path = root / ".speckit" / "memory.db"
    path.parent.mkdir(mode=0o750)
    Database.open(path).close()
    path.chmod(0o640)
    with Database.open(path) as database:
        later = (*MIGRATIONS, Migration("9999_later", "CREATE TABLE later (a TEXT) STRICT"))
        assert migrate(database.reader(), path, later) == ("9999_later",)
    (copy,) = path.parent.glob("*.before-*")
    assert (mode(path), mode(path.parent), mode(copy)) == (0o640, 0o750, 0o600)
    tally.tried(3)


def test_a_store_that_others_may_read_is_remarked_on_and_is_no_fault(
    root: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    assert outcome(capsys, "index", "docs")[0] == 0
    path = root / ".speckit" / "memory.db"
    for given, remarked in ((0o600, False), (0o644, True), (0o640, True)):
        path.chmod(given)
        status, document = outcome(capsys, "doctor")
        (store,) = [check for check in document["checks"] if check["name"] == "store"]
        assert (status, "other users" in store["detail"]) == (0, remarked)
        tally.tried()


def test_the_locks_of_a_store_are_kept_when_the_same_process_opens_it_again(root: Path, tally: Tally) -> None:
    """Closing a file gives up all locks of the process on it: another process would take the log for left behind."""
    path = root / "memory.db"
    with Database.open(path) as first:
        Database.open(path).close()
        assert call(root, ["search", "marmots"]).status == 0
        with first.write() as txn:
            txn.connection.execute("INSERT INTO meta VALUES ('kept', 'yes')")
        assert path.with_name("memory.db-wal").stat().st_size
    with Database.open(path) as again:
        assert again.reader().execute("SELECT value FROM meta WHERE key = 'kept'").get == "yes"
    tally.survived()
