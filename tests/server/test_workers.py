"""Worker processes answer reading calls; the server keeps clients and writes, and survives the end of any of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socketpair
from threading import Thread
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from speckit_memory.pipeline.isolation.wire import ArrayWire, EndedError
from speckit_memory.server.calls import worker_processes
from speckit_memory.server.calls.worker_processes import (
    CALL,
    WARM_UP,
    WITHDRAW,
    WorkerOptions,
    WorkerProcesses,
    receive,
    send,
    wire_of,
)
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.mcp_server.worker import Worker
from speckit_memory.server.workspace.idle_workspaces import LOOK_SECONDS
from tests.server.doors import COMMAND, environment

QUERY = {"query": "computeMPAB", "limit": 1}
NO_STATE = WorkerOptions(Common(), {"": (None, "full")}, 60.0)
PATIENCE = 60.0


@contextmanager
def worker_of(root: Path, name: str = "") -> Iterator[ArrayWire]:
    """The connection to a worker that runs in a thread and serves one workspace."""
    here, there = socketpair()
    worker = Worker(WorkerOptions(Common(db=root / "memory.db"), {name: (root, "full")}, 60.0))

    def serve() -> None:
        try:
            worker.serve(wire_of(there))
        except EndedError:
            worker.close()

    thread = Thread(target=serve)
    thread.start()
    wire = wire_of(here)
    try:
        yield wire
    finally:
        wire.close()
        thread.join()
        there.close()


def keys(answer: Any) -> list[str]:
    return [row["key"] for row in answer.result.structured_content["data"]["results"]]


def test_a_worker_answers_calls_one_after_the_other_and_from_its_cache(indexed: Path) -> None:
    with worker_of(indexed) as wire:
        answers = []
        for query in (QUERY, {"query": "rank fusion", "limit": 1}, QUERY):
            send(wire, CALL, "", "", "memory_search", query, "0123456789abcdef")
            answers.append(receive(wire)[0])
    assert [keys(answer) for answer in answers] == [
        ["docs/storage/wal.md"],
        ["docs/fusion.md"],
        ["docs/storage/wal.md"],
    ]
    assert [answer.again for answer in answers] == [False, False, True]


def test_a_worker_wraps_errors_as_the_server_does(indexed: Path) -> None:
    with worker_of(indexed) as wire:
        send(wire, CALL, "", "", "memory_search", {"qery": "x"}, "")
        answer = receive(wire)[0]
    assert (answer.code, answer.result.is_error) == ("E033", True)


def test_a_worker_finishes_a_withdrawn_call_and_takes_the_next_one(indexed: Path) -> None:
    with worker_of(indexed) as wire:
        send(wire, CALL, "", "", "memory_search", QUERY, "")
        send(wire, WITHDRAW)
        receive(wire)
        send(wire, CALL, "", "", "memory_search", QUERY, "")
        assert keys(receive(wire)[0]) == ["docs/storage/wal.md"]


def test_a_worker_of_named_workspaces_takes_calls_that_arrive_together(indexed: Path) -> None:
    with worker_of(indexed, "one") as wire:
        send(wire, WARM_UP, "one")
        send(wire, CALL, "one", "", "memory_search", QUERY, "")
        began = time.monotonic()
        assert keys(receive(wire)[0]) == ["docs/storage/wal.md"]
    assert time.monotonic() - began < LOOK_SECONDS / 2


def test_where_no_worker_is_free_the_server_answers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "PATIENCE_SECONDS", 0.01)
    assert WorkerProcesses(0, NO_STATE).answer("", "", "memory_search", QUERY) is None


class _Ending:
    """A worker that ends at its call."""

    is_alive = True

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def ask(self, _workspace: str, _principal: str, tool: str, _arguments: object) -> object:
        self.is_alive = False
        self._calls.append(tool)
        raise EndedError


class _Answering(_Ending):
    def ask(self, _workspace: str, _principal: str, tool: str, _arguments: object) -> object:
        self._calls.append(tool)
        return "answer"


@pytest.mark.parametrize(("kinds", "answer"), [((_Ending, _Answering), "answer"), ((_Ending, _Ending), EndedError)])
def test_the_call_of_a_worker_that_ends_is_given_to_another_one_once(kinds: Sequence[Any], answer: Any) -> None:
    calls: list[str] = []
    workers = WorkerProcesses(0, NO_STATE)
    # the queue orders workers, so the second one is put in when the first has been taken
    first, second = (kind(calls) for kind in kinds)
    workers._free.put(first)

    def put() -> None:
        while not calls:
            time.sleep(0.001)
        workers._free.put(second)

    putting = Thread(target=put)
    putting.start()
    if answer is EndedError:
        with pytest.raises(EndedError):
            workers.answer("", "", "memory_search", QUERY)
    else:
        assert workers.answer("", "", "memory_search", QUERY) == answer
    putting.join()
    assert calls == ["memory_search"] * 2


@dataclass(frozen=True)
class Served:
    """A server over HTTP with two workers."""

    url: str
    process: subprocess.Popen[bytes]

    def workers(self, count: int = 2) -> list[int]:
        """The ids of its workers, once there are so many."""
        until = time.monotonic() + PATIENCE
        while len(found := children(self.process.pid)) != count:
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found


def children(pid: int) -> list[int]:
    """The living children of a process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(status.parent.name))
    return sorted(found)


def assert_ended(pids: Sequence[int]) -> None:
    until = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.05)


@contextmanager
def served(root: Path) -> Iterator[Served]:
    with subprocess.Popen(
        [COMMAND, "serve", "--transport", "http", "--port", "0", "--workers", "2"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(root),
        cwd=root,
    ) as process:
        assert process.stderr is not None
        url = str(json.loads(process.stderr.readline())["url"])
        draining = Thread(target=process.stderr.read, daemon=True)
        draining.start()
        # answered by the loop that also waits for signals
        assert httpx2.get(url.replace("/mcp", "/health"), timeout=PATIENCE).status_code == 200
        try:
            yield Served(url, process)
        finally:
            process.kill()
            process.wait()
            draining.join()  # every worker has closed its end of the pipe


async def found(client: Client, query: str) -> list[str]:
    answer = await client.call_tool("memory_search", {"query": query, "limit": 1})
    assert answer.structured_content is not None
    return [row["key"] for row in answer.structured_content["data"]["results"]]


@pytest.mark.requirement("T27.workers")
@pytest.mark.usefixtures("processes")
def test_a_session_goes_on_whichever_worker_dies(workspace: Path) -> None:
    with served(workspace) as server:

        async def session() -> None:
            async with (
                httpx2.AsyncClient(timeout=PATIENCE) as http,
                Client(streamable_http_client(server.url, http_client=http)) as client,
            ):
                assert await found(client, "computeMPAB") == ["docs/storage/wal.md"]
                first = server.workers()
                # in the middle of a call: the worker with the lowest number is asked first, and does not go on
                for worker in first:
                    os.kill(worker, signal.SIGSTOP)
                async with anyio.create_task_group() as group:

                    async def ask(query: str, key: str) -> None:
                        assert await found(client, query) == [key]

                    group.start_soon(ask, "rank fusion", "docs/fusion.md")
                    group.start_soon(ask, "online backup", "docs/storage/backup.md")
                    await anyio.sleep(0.5)
                    os.kill(first[0], signal.SIGKILL)
                    os.kill(first[1], signal.SIGCONT)
                assert set(server.workers()) != set(first)
                # what the server writes, every worker finds
                saved = await client.call_tool(
                    "memory_save", {"title": "Quorum", "content": "The quorum of zebras is seven.", "folder": "docs"}
                )
                assert not saved.is_error, saved
                for query in ("quorum of zebras", "zebras: their quorum", "what is the quorum of zebras"):
                    assert await found(client, query) == ["docs/quorum.md"]

        anyio.run(session)


@pytest.mark.requirement("T27.workers")
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_server(indexed: Path, ending: signal.Signals) -> None:
    with served(indexed) as server:
        workers = server.workers()
        server.process.send_signal(ending)
        status = server.process.wait(PATIENCE)
        assert status == (-ending if ending == signal.SIGKILL else 128 + ending)
        assert_ended(workers)
