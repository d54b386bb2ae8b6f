"""What clients hear without asking: changes of memories, by whomever, and how far a long call is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated
from raw_server import INITIALIZE, RawServer, raw_server

from speckit_memory.memory.store.checkpoints import creation
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.listening import follower
from speckit_memory.server.mcp_server.app import build, workspace_of
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.views import file_changes
from tests.server.doors import COMMAND, call, environment
from tests.server.test_mcp_http import serving

PATIENCE = 120
LISTED = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
SHOWN = {"jsonrpc": "2.0", "id": "list", "method": "resources/list", "params": {"cursor": "0"}}


def heard(server: RawServer, method: str) -> dict[str, Any]:
    """The next notification of a kind; answers and others before it are dropped."""
    while (message := server.next(unasked=True)).get("method") != method:
        pass
    return dict(message.get("params") or {})


def silent(server: RawServer, *, looks: int = 4) -> None:
    """Asserts that nothing is told while so many looks are taken."""
    time.sleep(looks * follower.LOOK_SECONDS)
    server.send({"jsonrpc": "2.0", "id": "quiet", "method": "ping"})
    while (message := server.next(unasked=True)).get("id") != "quiet":
        assert message.get("method") not in (LISTED, UPDATED)


def subscribe(server: RawServer, uri: str, method: str = "resources/subscribe") -> dict[str, Any]:
    server.send({"jsonrpc": "2.0", "id": f"{method} {uri}", "method": method, "params": {"uri": uri}})
    return server.answer(f"{method} {uri}")


@pytest.mark.requirement("T29.told")
@pytest.mark.usefixtures("processes")
def test_a_client_that_shook_hands_hears_of_what_others_write(workspace: Path) -> None:
    with raw_server(workspace) as server:
        server.send(INITIALIZE)
        told = server.answer(INITIALIZE["id"])["result"]["capabilities"]
        assert told["resources"] == {"subscribe": True, "listChanged": True}
        assert subscribe(server, "memory://1")["error"]["code"] == -32602  # before the handshake is over
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, SHOWN)
        assert len(server.answer("list")["result"]["resources"]) == 6
        for uri in ("memory://docs/fusion.md", "memory://docs/t%6fne.md", "memory://docs/storage/wal.md"):
            assert "result" in subscribe(server, uri)
        assert "result" in subscribe(server, "memory://docs/storage/wal.md", "resources/unsubscribe")

        server.call(2, "memory_search", {"query": "rank fusion"})  # use is no change
        silent(server)
        for name in ("docs/fusion.md", "docs/storage/wal.md"):
            (workspace / name).write_text("# Changed\n\nBy another process.\n")
        (workspace / "docs/tone.md").unlink()
        assert call(workspace, ["index", "docs"]).status == 0
        heard(server, LISTED)
        assert {heard(server, UPDATED)["uri"] for _ in range(2)} == {
            "memory://docs/fusion.md",
            "memory://docs/t%6fne.md",
        }
        silent(server)

        server.call(3, "memory_save", {"content": "# Mine\n\nWritten by this very server.\n", "title": "Mine"})
        heard(server, LISTED)
        assert server.close() == 0


async def next_events(subscription: Any, count: int) -> set[object]:
    found: set[object] = set()
    with anyio.fail_after(PATIENCE):
        async for event in subscription:
            found.add(event)
            if len(found) >= count:
                break
    return found


async def listens(client: Client, root: Path) -> None:
    """What a client of the newer protocol hears on a stream that it opens, and is told that it may hear."""
    told = client.server_capabilities
    lists = (told.resources, told.tools, told.prompts)
    assert [one is not None and one.list_changed for one in lists] == [True, False, False]
    await client.list_resources(cursor="0")
    uris = ["memory://docs/fusion.md", "memory://docs/new.md", "memory://docs/tone.md"]
    async with client.listen(resources_list_changed=True, resource_subscriptions=uris) as subscription:
        for name in ("docs/fusion.md", "docs/new.md"):
            (root / name).write_text("# Changed\n\nBy another process.\n")
        assert call(root, ["index", "docs"]).status == 0
        events = await next_events(subscription, 3)
        assert events == {ResourcesListChanged(), *(ResourceUpdated(uri=uri) for uri in uris[:2])}
    with pytest.raises(MCPError, match="at most 1,000 are accepted"):
        async with client.listen(resource_subscriptions=[f"memory://{number}" for number in range(1_001)]):
            pass


@pytest.mark.requirement("T29.told")
@pytest.mark.usefixtures("processes")
def test_a_stream_over_stdio_brings_changes(workspace: Path) -> None:
    async def session() -> None:
        server = StdioServerParameters(command=str(COMMAND), args=["serve"], env=environment(workspace), cwd=workspace)
        async with Client(server) as client:
            await listens(client, workspace)

    anyio.run(session)


@pytest.mark.requirement("T29.told")
@pytest.mark.usefixtures("processes")
def test_streams_over_http_bring_changes_to_old_and_new_clients(workspace: Path) -> None:
    got: list[str] = []

    async def note(message: Any) -> None:
        got.append(getattr(message, "method", ""))

    async def session(url: str) -> None:
        async with (
            httpx2.AsyncClient(timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
            Client(streamable_http_client(url), mode="legacy", message_handler=note) as old,
        ):
            await old.list_resources(cursor="0")
            await listens(client, workspace)
            with anyio.fail_after(PATIENCE):
                while LISTED not in got:
                    await anyio.sleep(0.05)

    with serving(workspace) as url:
        anyio.run(session, url)


@contextmanager
def watched(root: Path) -> Iterator[tuple[RawServer, Callable[[str], list[dict[str, Any]]]]]:
    """A server that watches, and what it has logged under a name so far."""
    log = root / f"log-{time.time_ns()}"
    with log.open("w") as stream, raw_server(root, "--watch", stderr=stream) as server:
        server.start()

        def logged(event: str) -> list[dict[str, Any]]:
            lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
            return [line for line in lines if line["event"] == event]

        yield server, logged


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.requirement("I8.served", "T29.told")
@pytest.mark.usefixtures("processes")
def test_one_of_two_servers_watches_the_files_and_the_other_takes_over(tmp_path: Path) -> None:
    (tmp_path / ".speckit").mkdir()
    (tmp_path / "docs").mkdir()
    with watched(tmp_path) as (first, first_logged):
        server_sees_no_store = first.call(1, "memory_stats")
        assert server_sees_no_store["isError"]
        (tmp_path / "docs" / "a.md").write_text("# A\n\nThe first note.\n")
        first.call(2, "memory_index_scan", {"specFolder": "docs"})
        until(lambda: first_logged("watching"))
        with watched(tmp_path) as (second, second_logged):
            second.send(SHOWN)
            assert len(second.answer("list")["result"]["resources"]) == 1
            (tmp_path / "docs" / "b.md").write_text("# B\n\nThe second note.\n")
            heard(second, LISTED)
            heard(first, LISTED)
            assert [line["created"] for line in first_logged("indexed")] == [1]
            assert second_logged("watching") == []
            (tmp_path / "more").mkdir()
            (tmp_path / "more" / "c.md").write_text("# C\n\nOf another source.\n")
            second.call(2, "memory_index_scan", {"specFolder": "more"})
            until(lambda: [line["sources"] for line in first_logged("watching")] == [1, 2])
            assert first.close() == 0
            until(lambda: second_logged("watching"))
            (tmp_path / "more" / "c.md").unlink()
            until(lambda: any(line["vanished"] for line in second_logged("indexed")))
            assert second.close() == 0


def test_without_its_library_a_server_that_shall_watch_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECKIT_ROOT", str(tmp_path))
    monkeypatch.setattr(file_changes, "find_spec", lambda _name: None)
    from click.testing import CliRunner

    from speckit_memory.server.commands.serve import command

    ran = CliRunner().invoke(command, ["--watch"], standalone_mode=False)
    assert ran.return_value == 2
    assert "E031: --watch needs the optional library 'watchfiles'" in ran.output


@pytest.mark.requirement("T29.progress")
def test_long_calls_tell_how_far_they_are_and_a_copy_that_was_taken_back_leaves_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECKIT_ROOT", str(workspace))
    monkeypatch.setattr(creation, "PAGES", 5)
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def work() -> None:
        server = build(workspace_of(Common(db=workspace / "memory.db")), warm_up=False, limits=ThreadLimits())
        async with Client(server) as client:
            for number in range(300):
                (workspace / "docs" / f"{number}.md").write_text(f"# Note {number}\n\nIt says {number}.\n")
            scanned = await client.call_tool("memory_index_scan", {}, progress_callback=note)
            assert not scanned.is_error
            assert told[-1][0] >= 300
            assert [done for done, *_ in told] == sorted({done for done, *_ in told})
            assert all(total is None or done <= total for done, total, _ in told)
            assert {message for *_, message in told} <= {"documents", "search index"}
            told.clear()
            kept = await client.call_tool("checkpoint_create", {"name": "kept"}, progress_callback=note)
            assert not kept.is_error
            assert len(told) > 2
            assert told[-1][0] == told[-1][1]
            assert {message for *_, message in told} == {"pages"}

            async def stop(progress: float, total: float | None, message: str | None) -> None:
                assert (message, total is not None and progress < total) == ("pages", True)
                scope.cancel()

            with anyio.CancelScope() as scope:
                await client.call_tool("checkpoint_create", {"name": "stopped"}, progress_callback=stop)
            assert scope.cancelled_caught
            listed = await client.call_tool("checkpoint_list", {})
            assert [one["name"] for one in listed.structured_content["data"]["checkpoints"]] == ["kept"]

    anyio.run(work)
    files = [file for file in (workspace / "checkpoints").rglob("*") if file.suffix == ".db"]
    assert len(files) <= 1
