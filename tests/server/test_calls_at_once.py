"""Calls under way at once: quick ones do not wait for long ones, equal scans are one, and nobody works for callers that
have gone."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import IndexProgress, IndexReport
from speckit_memory.pipeline.process.cancellation import WithdrawnError
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.mcp_server.app import build, workspace_of
from speckit_memory.server.replies.worker_calls import LENGTHY, EqualCalls, ThreadLimits, WorkerCall
from speckit_memory.server.transport.http_hangups import CancelHungUp, HangUps
from tests.server.doors import connected

pytestmark = pytest.mark.requirement("T29.beside")
SCAN = "memory_index_scan"


class HeldScans:
    """Index runs that wait before they read anything, until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = Event()
        self.begun = SimpleQueue[str]()
        self.ended = SimpleQueue[str]()
        original = Memory.index

        def held(memory: Memory, paths: Any, progress: Callable[[IndexProgress], None], **options: Any) -> IndexReport:
            folder = Path(paths[0]).name
            self.begun.put(folder)
            assert self.go.wait(60)
            try:
                progress(IndexProgress(0, None, ""))
                report = original(memory, paths, progress=progress, **options)
            except WithdrawnError:
                self.ended.put(f"{folder} withdrawn")
                raise
            self.ended.put(f"{folder} done")
            return report

        monkeypatch.setattr(Memory, "index", held)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldScans:
    return HeldScans(monkeypatch)


async def next_of(queue: SimpleQueue[str]) -> str:
    return await anyio.to_thread.run_sync(queue.get, True, 60)


def folders(root: Path, count: int) -> list[str]:
    names = [f"folder-{number}" for number in range(count)]
    for name in names:
        (root / name).mkdir()
        (root / name / "note.md").write_text(f"# Note of {name}\n\nIt lies in {name}.\n", encoding="utf-8")
    return names


async def data_of(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content["data"]


def test_searches_saves_and_health_are_answered_while_more_scans_wait_than_there_are_places(
    workspace: Path, held: HeldScans
) -> None:
    names = folders(workspace, 12)

    async def session() -> None:
        async with connected(workspace, "--no-warm-up") as client, anyio.create_task_group() as group:
            for name in names:
                group.start_soon(data_of, client, SCAN, {"specFolder": name})
            for _ in range(LENGTHY):
                await next_of(held.begun)
            assert (await data_of(client, "memory_search", {"query": "rank fusion"}))["results"]
            assert (await data_of(client, "memory_save", {"filePath": "docs/fusion.md"}))["outcome"] == "unchanged"
            assert (await data_of(client, "memory_health", {}))["ok"]
            assert held.begun.empty()
            held.go.set()

    anyio.run(session)
    assert sorted(held.ended.get_nowait() for _ in names) == sorted(f"{name} done" for name in names)


def test_equal_scans_under_way_are_one_whose_answer_all_callers_get(workspace: Path, held: HeldScans) -> None:
    folders(workspace, 2)
    spelt: list[dict[str, Any]] = [
        {"specFolder": "folder-0"}, {"specFolder": "folder-0/"}, {"specFolder": "./folder-0", "force": False},
        {"specFolder": str(workspace / "folder-0"), "incremental": True},
    ]  # fmt: skip
    answers: list[Any] = []

    async def session() -> None:
        async def scan(arguments: dict[str, Any]) -> None:
            answers.append(await data_of(client, SCAN, arguments))

        async with connected(workspace, "--no-warm-up") as client:
            async with anyio.create_task_group() as group:
                group.start_soon(scan, spelt[0])
                assert await next_of(held.begun) == "folder-0"
                for arguments in spelt[1:]:
                    group.start_soon(scan, arguments)
                group.start_soon(data_of, client, SCAN, {"specFolder": "folder-0", "force": True})
                assert await next_of(held.begun) == "folder-0"  # another one, which is not equal
                await data_of(client, "memory_stats", {})  # the calls before it have arrived
                held.go.set()
            answers.append(await data_of(client, SCAN, spelt[0]))

    anyio.run(session)
    *merged, later = answers
    assert len(merged) == len(spelt)
    assert all(answer == merged[0] for answer in merged)
    assert (later["created"], later["unchanged"]) == (0, 1)
    # the equal ones, once more for those that came later, the forced one, and the last
    assert held.ended.qsize() == 4


def test_a_file_written_before_a_scan_is_called_is_in_its_answer_whatever_is_under_way(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders(workspace, 1)
    read, go = SimpleQueue[str](), Event()
    original = Memory.index

    def index(memory: Memory, paths: Any, **options: Any) -> IndexReport:
        report = original(memory, paths, **options)
        read.put("read")
        assert go.wait(60)
        return report

    monkeypatch.setattr(Memory, "index", index)
    answers: list[Any] = []

    async def session() -> None:
        async def scan() -> None:
            answers.append(await data_of(client, SCAN, {"specFolder": "folder-0"}))

        async with connected(workspace, "--no-warm-up") as client, anyio.create_task_group() as group:
            group.start_soon(scan)
            await next_of(read)
            (workspace / "folder-0" / "late.md").write_text("# Late\n\nWritten while a scan ran.\n", encoding="utf-8")
            group.start_soon(scan)
            await data_of(client, "memory_stats", {})
            go.set()

    anyio.run(session)
    assert [(answer["created"], answer["unchanged"], answer["passages"]) for answer in answers] == [(2, 0, 2)] * 2


def test_a_call_that_equal_ones_may_join_is_forgotten_once_it_is_answered() -> None:
    async def session() -> None:
        calls: EqualCalls[str] = EqualCalls()
        call = calls.joined("folder", lambda: WorkerCall(lambda: "scanned", ThreadLimits().lengthy))
        assert await call.answer() == "scanned"
        forgotten = weakref.ref(call)
        del call
        gc.collect()
        assert forgotten() is None

    anyio.run(session)


def test_a_scan_goes_on_for_the_caller_that_is_left_and_ends_when_none_is(workspace: Path, held: HeldScans) -> None:
    names = folders(workspace, 2)
    answered: list[str] = []

    async def session() -> None:
        async def scan(folder: str, scope: anyio.CancelScope) -> None:
            with scope:
                await data_of(client, SCAN, {"specFolder": folder})
                answered.append(folder)

        async with connected(workspace, "--no-warm-up") as client:
            for folder, leaving in zip(names, (1, 2), strict=True):
                scopes = [anyio.CancelScope(), anyio.CancelScope()]
                async with anyio.create_task_group() as group:
                    group.start_soon(scan, folder, scopes[0])
                    assert await next_of(held.begun) == folder
                    group.start_soon(scan, folder, scopes[1])
                    await data_of(client, "memory_stats", {})  # the call before it has arrived
                    for scope in scopes[:leaving]:
                        scope.cancel()
                    await data_of(client, "memory_stats", {})
                    held.go.set()
                    ended = await next_of(held.ended)
                assert ended == f"{folder} {'done' if leaving == 1 else 'withdrawn'}"
                held.go.clear()
                held.begun, held.ended = SimpleQueue(), SimpleQueue()  # without the second look for who came later

    anyio.run(session)
    assert answered == names[:1]


def test_of_scans_whose_callers_have_gone_those_that_wait_never_begin(workspace: Path, held: HeldScans) -> None:
    names = folders(workspace, 30)

    async def session() -> None:
        async with connected(workspace, "--no-warm-up") as client:
            async with anyio.create_task_group() as group:
                for name in names:
                    group.start_soon(data_of, client, SCAN, {"specFolder": name})
                for _ in range(LENGTHY):
                    await next_of(held.begun)
                await data_of(client, "memory_stats", {})
                group.cancel_scope.cancel()
            await data_of(client, "memory_stats", {})
            held.go.set()
            assert (await data_of(client, SCAN, {"specFolder": "docs"}))["unchanged"] == 6

    anyio.run(session)
    assert held.begun.get_nowait() == "docs"
    assert held.begun.empty()


def test_what_a_client_over_http_asked_for_ends_when_it_hangs_up(workspace: Path, held: HeldScans) -> None:
    folders(workspace, 1)
    served = workspace_of(Common(db=workspace / "memory.db"), workspace)
    sdk_app = build(served, warm_up=False, limits=ThreadLimits(), middleware=[CancelHungUp()]).streamable_http_app()
    app = HangUps(sdk_app)

    async def post(body: dict[str, Any], session: str = "", hangs_up: anyio.Event | None = None) -> str:
        """Sends a message; returns the session that the answer names, when it is complete."""
        named, asked, complete = "", False, anyio.Event()
        headers = {
            "host": "127.0.0.1:8000", "content-type": "application/json", "mcp-session-id": session,
            "accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18",
        }  # fmt: skip
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000),
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": json.dumps(body).encode()}
            await (hangs_up or complete).wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal named
            if message["type"] == "http.response.start":
                assert message["status"] < 300, message
                named = dict(message["headers"]).get(b"mcp-session-id", b"").decode()
            elif not message.get("more_body"):
                complete.set()

        await app(scope, receive, send)
        return named

    async def client() -> None:
        async with sdk_app.router.lifespan_context(sdk_app):
            about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            session = await post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
            await post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
            call = {"name": SCAN, "arguments": {"specFolder": "folder-0"}}
            hung_up = anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(
                    post, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, session, hung_up
                )
                await next_of(held.begun)
                hung_up.set()
            held.go.set()
            assert await next_of(held.ended) == "folder-0 withdrawn"

    anyio.run(client)
    served.finish(0)
