"""The store's file is replaced, restored, deleted or overwritten while a server has it open.

What the server acknowledges after that must be in the file that is at the path then; what it cannot save it refuses.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from mcp import Client, StdioServerParameters
from tally import Tally

from tests.memory.store.file.test_every_schema import make_older
from tests.server.doors import call, environment, server_command

pytestmark = pytest.mark.usefixtures("processes")

STORE = "memory.db"
PARTS = ("", "-wal", "-shm")
SAVES = 12

Replace = Callable[[Path, Path], object]
"""Puts something else at the path of a store. Takes the path, and an earlier copy of the same store."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a store of three documents, and a copy of the store. Tests must not change it."""
    root = tmp_path_factory.mktemp("made")
    (root / "docs").mkdir()
    for name in ("one", "two", "three"):
        (root / "docs" / f"{name}.md").write_text(f"# Note {name}\n\nThe {name} note is about marmots.\n")
    for number in range(SAVES):
        (root / f"later{number}.md").write_text(
            f"# Later {number}\n\nSaved later, about the walrus of number {number}.\n"
        )
    assert call(root, ["index", "docs"]).status == 0
    shutil.copy(root / STORE, root / "backup.db")
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of the workspace, to be changed at will."""
    return Path(shutil.copytree(made, tmp_path / "workspace"))


def keys(store: Path) -> set[str]:
    """The keys that another process finds in a store."""
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return {key for (key,) in connection.execute("SELECT key FROM memories")}
    finally:
        connection.close()


@asynccontextmanager
async def server_of(root: Path, **more: str) -> AsyncIterator[Callable[..., Any]]:
    """A real server, and the function that calls its tools."""
    environ = environment(root, **more)
    command, *arguments = server_command(environ)
    server = StdioServerParameters(command=command, args=arguments, env=environ, cwd=root)
    async with Client(server) as client:

        async def tool(name: str, **arguments: Any) -> dict[str, Any]:
            document = (await client.call_tool(name, arguments)).structured_content
            assert isinstance(document, dict)
            assert document.get("error", {}).get("code") != "E199", document
            return document

        yield tool


def served(root: Path, steps: Callable[[Callable[..., Any]], Any], **more: str) -> Any:
    """Runs `steps` with a function that calls a tool of a real server and returns its document."""

    async def session() -> Any:
        async with server_of(root, **more) as tool:
            return await steps(tool)

    return anyio.run(session)


def saved_around(root: Path, replace: Replace, before: int = 2) -> tuple[list[str], list[str], dict[str, Any]]:
    """Saves some documents, replaces the store, saves the rest: the keys acknowledged after that, the codes of
    refusals, and the last answer of `memory_health`."""

    async def steps(tool: Callable[..., Any]) -> tuple[list[str], list[str], dict[str, Any]]:
        assert "error" not in await tool("memory_search", query="marmots")
        for number in range(before):
            assert (await tool("memory_save", filePath=f"later{number}.md"))["data"]["outcome"] == "created"
        await anyio.to_thread.run_sync(replace, root / STORE, root / "backup.db")
        acknowledged: list[str] = []
        refused: list[str] = []

        async def save(number: int) -> None:
            answer = await tool("memory_save", filePath=f"later{number}.md")
            if "error" in answer:
                refused.append(answer["error"]["code"])
            else:
                acknowledged.append(answer["data"]["key"])

        async with anyio.create_task_group() as group:
            for number in range(before, SAVES):
                group.start_soon(save, number)
        return acknowledged, refused, await tool("memory_health")

    found: tuple[list[str], list[str], dict[str, Any]] = served(root, steps)
    return found


def deleted_and_indexed_again(path: Path, _: Path) -> None:
    for part in PARTS:
        path.with_name(path.name + part).unlink(missing_ok=True)
    assert call(path.parent, ["index", "docs"]).status == 0


def deleted(path: Path, _: Path) -> None:
    for part in PARTS:
        path.with_name(path.name + part).unlink(missing_ok=True)


def deleted_but_for_its_log_and_indexed_again(path: Path, _: Path) -> None:
    path.unlink()
    call(path.parent, ["index", "docs"]).ok()
    assert {f"docs/{name}.md" for name in ("one", "two", "three")} <= keys(path)


def moved_over(path: Path, backup: Path) -> None:
    Path(shutil.copy(backup, f"{backup}.new")).replace(path)


def moved_over_without_the_log(path: Path, backup: Path) -> None:
    for part in PARTS[1:]:
        path.with_name(path.name + part).unlink(missing_ok=True)
    moved_over(path, backup)


def moved_away_and_restored(path: Path, backup: Path) -> None:
    for part in PARTS:
        path.with_name(path.name + part).rename(path.with_name(f"old{part}"))
    shutil.copy(backup, path)


def linked_elsewhere(path: Path, backup: Path) -> None:
    deleted(path, backup)
    path.symlink_to(shutil.copy(backup, f"{backup}.linked"))


def restored_by_sqlite(path: Path, backup: Path) -> None:
    source, target = apsw.Connection(str(backup)), apsw.Connection(str(path))
    target.set_busy_timeout(10_000)
    with target.backup("main", source, "main") as copying:
        copying.step()
    source.close()
    target.close()


def restored_by_sqlite_and_counted_as_far(path: Path, backup: Path) -> None:
    """As many changes as before, but others: the numbers alone do not tell."""
    connection = apsw.Connection(str(path))
    last = connection.execute("SELECT max(seq) FROM changes").get
    connection.close()
    restored_by_sqlite(path, backup)
    connection = apsw.Connection(str(path))
    while connection.execute("SELECT max(seq) FROM changes").get < last:
        connection.execute("INSERT INTO changes (memory_id, kind, token) VALUES (1, 'attributes', random())")
    connection.execute("UPDATE memories SET confidence = 0.9")
    connection.close()


def older_schema(path: Path, backup: Path) -> None:
    make_older(backup, "0008")
    moved_away_and_restored(path, backup)


@pytest.mark.parametrize(
    "replace",
    [
        deleted,
        deleted_and_indexed_again,
        deleted_but_for_its_log_and_indexed_again,
        moved_over,
        moved_over_without_the_log,
        moved_away_and_restored,
        linked_elsewhere,
        restored_by_sqlite,
        restored_by_sqlite_and_counted_as_far,
        older_schema,
    ],
)
def test_every_save_that_is_acknowledged_after_a_replacement_is_in_the_file_at_the_path(
    root: Path, replace: Replace, tally: Tally
) -> None:
    acknowledged, refused, health = saved_around(root, replace)
    assert (len(acknowledged), refused) == (SAVES - 2, [])
    assert set(acknowledged) <= keys(root / STORE)
    assert health["data"]["ok"], health
    store = next(check for check in health["data"]["checks"] if check["name"] == "store")
    assert "it was reopened" in store["detail"]
    tally.tried(len(acknowledged))
    tally.survived()


def a_folder(path: Path, backup: Path) -> None:
    deleted(path, backup)
    path.mkdir()


def a_text(path: Path, backup: Path) -> None:
    deleted(path, backup)
    path.write_text("# A note\n" * 1000)


def of_another_program(path: Path, backup: Path) -> None:
    deleted(path, backup)
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (a)")
    other.close()


def of_a_later_version(path: Path, backup: Path) -> None:
    connection = apsw.Connection(str(backup))
    connection.execute("INSERT INTO migrations VALUES ('9999_of_tomorrow', '2099-01-01T00:00:00Z')")
    connection.close()
    moved_away_and_restored(path, backup)


def a_link_to_itself(path: Path, backup: Path) -> None:
    deleted(path, backup)
    path.symlink_to(path)


def stats(root: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change of the store's file and of what lies beside it."""
    found = []
    for file in sorted(root.glob(f"{STORE}*")):
        with suppress(FileNotFoundError):
            found.append((file.name, file.lstat().st_size, file.lstat().st_mtime_ns))
    return found


@pytest.mark.parametrize(
    ("replace", "code"),
    [
        (a_folder, "E014"),
        (a_text, "E024"),
        (of_another_program, "E024"),
        (of_a_later_version, "E025"),
        (a_link_to_itself, "E020"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone_and_the_store_is_served_once_it_is_back(
    root: Path, replace: Replace, code: str, tally: Tally
) -> None:
    async def steps(tool: Callable[..., Any]) -> None:
        assert "error" not in await tool("memory_search", query="marmots")
        kept = root / "kept.db"
        shutil.copy(root / "backup.db", kept)
        replace(root / STORE, root / "backup.db")
        state = stats(root)
        for name, arguments in (
            ("memory_save", {"filePath": "later0.md"}),
            ("memory_search", {"query": "marmots"}),
            ("memory_stats", {}),
            ("memory_list", {}),
            ("memory_index_scan", {}),
            ("memory_validate", {"id": 1, "wasUseful": True}),
        ):
            assert (await tool(name, **arguments))["error"]["code"] == code, name
            tally.tried()
        assert not (await tool("memory_health"))["data"]["ok"]
        assert state[0] == stats(root)[0]
        # a log appears while the file of a later version is looked at, which the server also does by itself
        with anyio.fail_after(30):
            while stats(root) != state:
                await anyio.sleep(0.05)
        path = root / STORE
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        kept.replace(path)
        assert (await tool("memory_save", filePath="later0.md"))["data"]["outcome"] == "created"

    served(root, steps)
    assert "later0.md" in keys(root / STORE)
    tally.survived()


OVERWRITTEN: dict[str, Replace] = {
    # as `cp backup.db memory.db`: the file stays the same one, and so does its log
    "copied_over": lambda path, backup: path.write_bytes(backup.read_bytes()),
    "cut_off": lambda path, _: path.write_bytes(path.read_bytes()[:5000]),
    "emptied": lambda path, _: path.write_bytes(b""),
    "without_its_log": lambda path, _: path.with_name(f"{path.name}-wal").unlink(),
}


@pytest.mark.parametrize("how", OVERWRITTEN)
def test_a_store_that_is_overwritten_in_place_is_noticed_and_no_acknowledged_save_is_lost(
    root: Path, how: str, tally: Tally
) -> None:
    acknowledged, refused, _ = saved_around(root, OVERWRITTEN[how])
    assert set(refused) <= {"E020", "E021", "E022", "E024", "E026"}
    assert len(acknowledged) + len(refused) == SAVES - 2
    if acknowledged:
        assert set(acknowledged) <= keys(root / STORE)
    tally.tried(SAVES - 2)
    tally.survived()


def test_two_servers_of_one_store_both_follow_a_replacement(root: Path, tally: Tally) -> None:
    async def steps(tool: Callable[..., Any]) -> None:
        async with server_of(root) as other:
            for ask in (tool, other):
                assert "error" not in await ask("memory_search", query="marmots")
            moved_over(root / STORE, root / "backup.db")
            for number, ask in enumerate([tool, other] * 4):
                assert (await ask("memory_save", filePath=f"later{number}.md"))["data"]["outcome"] == "created"
                tally.tried()
            for ask in (tool, other):
                assert (await ask("memory_stats"))["data"]["memories"] == 3 + 8

    served(root, steps)
    assert {f"later{number}.md" for number in range(8)} <= keys(root / STORE)
    tally.survived()


def write_many(root: Path) -> None:
    for number in range(400):
        text = " ".join(f"word{number * 7 % 400 + word}" for word in range(400))
        (root / "docs" / f"many{number}.md").write_text(f"# Many {number}\n\n{text} gnu{number}\n")


def test_a_store_that_another_process_indexes_many_files_into_is_not_taken_for_another_one(
    root: Path, tally: Tally
) -> None:
    """More than the log holds before it is copied into the file and begun anew, and nothing written by the server."""
    write_many(root)

    async def steps(tool: Callable[..., Any]) -> None:
        assert "error" not in await tool("memory_health")
        indexed = await anyio.to_thread.run_sync(call, root, ["index", "docs"])
        assert indexed.status == 0, indexed.err
        (found,) = (await tool("memory_search", query="gnu399", limit=1))["data"]["results"]
        assert found["key"] == "docs/many399.md"
        health = await tool("memory_health")
        assert "it was reopened" not in str(health)
        tally.survived()

    served(root, steps)


def test_a_store_that_another_process_indexed_many_files_into_is_well(root: Path, tally: Tally) -> None:
    write_many(root)

    async def steps(tool: Callable[..., Any]) -> None:
        assert (await tool("memory_health"))["data"]["ok"]
        indexed = await anyio.to_thread.run_sync(call, root, ["index", "docs"])
        assert indexed.status == 0, indexed.err
        health = await tool("memory_health")
        assert health["data"]["ok"], health
        tally.survived()

    served(root, steps)


def test_a_store_that_another_program_tidies_up_is_not_taken_for_another_one(root: Path, tally: Tally) -> None:
    async def steps(tool: Callable[..., Any]) -> None:
        for _ in range(2):
            assert "it was reopened" not in str(await tool("memory_health"))
            with closing(apsw.Connection(str(root / STORE))) as other:
                other.execute("VACUUM")
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        health = await tool("memory_health")
        assert health["data"]["ok"], health
        assert "it was reopened" not in str(health)
        tally.survived()

    served(root, steps)
