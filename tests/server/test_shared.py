"""`serve --shared`: one process answers for several clients, and each is served as if it had one of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from raw_server import INITIALIZE, INITIALIZED, PATIENCE, RawServer, call_of, raw_server

from tests.server.doors import call

pytestmark = pytest.mark.usefixtures("processes")

QUERY = {"query": "computeMPAB", "limit": 1}
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


class Fronts:
    """Clients of `serve --shared` with one folder of sockets, and the processes that served them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._logs: dict[RawServer, Path] = {}

    def start(self, root: Path, *arguments: str, greets: bool = True, **env: str) -> RawServer:
        """A client; it has shaken hands unless it does not greet."""
        log = self.folder / f"log-{len(self._logs)}"
        with log.open("wb") as stderr:
            front = self._stack.enter_context(
                raw_server(
                    root, "--shared", *arguments, stderr=stderr, spawned=True,
                    env={"XDG_RUNTIME_DIR": str(self.folder), **env},
                )
            )  # fmt: skip
        self._logs[front] = log
        if greets:
            front.start()
        return front

    def log(self, front: RawServer) -> list[dict[str, Any]]:
        """The lines of standard error of a client."""
        return [json.loads(line) for line in self._logs[front].read_text().splitlines()]

    def processes(self, front: RawServer) -> list[int]:
        """The processes that have served a client, one after the other."""
        return [line["process"] for line in self.log(front) if line["event"] == "client joined"]

    def process(self, front: RawServer) -> int:
        """The one that serves it now."""
        return self.processes(front)[-1]

    def ended(self) -> bool:
        """Whether no process is left of all that served a client."""
        return not any(map(lives, {process for front in self._logs for process in self.processes(front)}))


def lives(process: int) -> bool:
    """Whether a process runs. What has ended stays in the table until its parent has noticed."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < last
        time.sleep(0.02)


@pytest.fixture
def fronts() -> Iterator[Fronts]:
    """A folder with a short path, as the address of a socket needs; all processes have ended when the test has."""
    with TemporaryDirectory(prefix="run-", dir="/tmp") as folder:
        with ExitStack() as stack:
            fronts = Fronts(Path(folder), stack)
            yield fronts
        wait_until(fronts.ended)


def found(answer: dict[str, Any]) -> list[str]:
    return [row["key"] for row in answer["structuredContent"]["data"]["results"]]


@pytest.mark.requirement("T27.shared")
def test_clients_of_a_store_share_a_process_and_have_their_own_answers_and_logs(
    fronts: Fronts, workspace: Path
) -> None:
    one, other = fronts.start(workspace), fronts.start(workspace)
    # the same id at the same time
    one.send(call_of(7, "memory_search", QUERY))
    other.send(call_of(7, "memory_search", {"query": "rank fusion", "limit": 1}))
    assert found(one.answer(7)["result"]) == ["docs/storage/wal.md"]
    assert found(other.answer(7)["result"]) == ["docs/fusion.md"]
    assert fronts.process(one) == fronts.process(other)
    other.call(8, "memory_list")
    wait_until(lambda: "memory_list" in [line.get("tool") for line in fronts.log(other)])
    assert [line["tool"] for line in fronts.log(one) if line["event"] == "tool"] == ["memory_search"]
    assert (one.close(), other.close()) == (0, 0)


def test_the_process_ends_after_the_last_client_and_leaves_nothing(fronts: Fronts, workspace: Path) -> None:
    one, other = fronts.start(workspace), fronts.start(workspace)
    process = fronts.process(one)
    assert one.close() == 0
    assert found(other.call(1, "memory_search", QUERY)) == ["docs/storage/wal.md"]
    assert lives(process)
    assert other.close() == 0
    wait_until(lambda: not lives(process))
    assert list((fronts.folder / "speckit-memory").iterdir()) == []


@pytest.mark.requirement("T27.shared")
def test_a_client_that_is_killed_leaves_the_others_served(fronts: Fronts, workspace: Path) -> None:
    killed, other = fronts.start(workspace), fronts.start(workspace)
    killed.send(*(call_of(number, "memory_search", {"query": f"fusion {number}"}) for number in range(50)))
    killed.process.kill()
    assert found(other.call(1, "memory_search", QUERY)) == ["docs/storage/wal.md"]
    assert len(fronts.processes(other)) == 1


@pytest.mark.requirement("T27.shared")
def test_calls_that_read_are_repeated_when_the_process_is_killed_and_others_say_what_to_do(
    fronts: Fronts, workspace: Path
) -> None:
    front, other = fronts.start(workspace), fronts.start(workspace)
    process = fronts.process(front)
    os.kill(process, signal.SIGSTOP)  # it has the calls, and answers none
    front.send(
        call_of("read", "memory_search", QUERY), call_of("write", "memory_validate", {"id": 1, "wasUseful": True})
    )
    front.send(PING)
    os.kill(process, signal.SIGKILL)
    answers = {message["id"]: message for message in (front.next(), front.next(), front.next())}
    assert found(answers["read"]["result"]) == ["docs/storage/wal.md"]
    assert answers["ping"]["result"] == {}
    refused = answers["write"]["error"]
    assert refused["data"]["error"]["code"] == "E134"
    assert "memory_validate" in refused["message"]
    assert "before you repeat it" in refused["message"]
    # both are served on, by one process again
    assert found(front.call(2, "memory_search", QUERY)) == found(other.call(2, "memory_search", QUERY))
    assert fronts.process(front) == fronts.process(other) != process


def test_a_session_goes_on_in_the_next_process(fronts: Fronts, workspace: Path) -> None:
    front = fronts.start(workspace, "--profile", "core")
    uri = "memory://docs/fusion.md"
    front.send({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}})
    assert front.answer(1)["result"] == {}
    os.kill(fronts.process(front), signal.SIGKILL)
    wait_until(lambda: len(fronts.processes(front)) == 2)
    front.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert len(front.answer(2)["result"]["tools"]) == 6
    document = workspace / "docs" / "fusion.md"
    document.write_text(document.read_text() + "\nOne more line about fusion.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    while (told := front.next(unasked=True)).get("method") != "notifications/resources/updated":
        pass
    assert told["params"]["uri"] == uri
    joined = [line for line in fronts.log(front) if line["event"] == "client joined"]
    assert [line["returning"] for line in joined] == [False, True]


def test_a_process_that_is_asked_to_end_is_replaced(fronts: Fronts, workspace: Path) -> None:
    front = fronts.start(workspace)
    os.kill(fronts.process(front), signal.SIGTERM)
    wait_until(lambda: len(fronts.processes(front)) == 2)
    assert found(front.call(1, "memory_search", QUERY)) == ["docs/storage/wal.md"]
    assert {"event": "stopped", "status": 143} in [
        {name: line.get(name) for name in ("event", "status")} for line in fronts.log(front)
    ]


def test_a_socket_without_a_process_is_replaced(fronts: Fronts, workspace: Path) -> None:
    front = fronts.start(workspace)
    process = fronts.process(front)
    front.process.send_signal(signal.SIGSTOP)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: not lives(process))
    front.process.kill()
    [socket] = (fronts.folder / "speckit-memory").glob("*.sock")
    assert found(fronts.start(workspace).call(1, "memory_search", QUERY)) == ["docs/storage/wal.md"]
    assert socket.is_socket()


@pytest.mark.requirement("T27.shared")
def test_clients_that_start_at_once_meet_in_one_process(fronts: Fronts, workspace: Path) -> None:
    many = [fronts.start(workspace, greets=False) for _ in range(4)]
    for front in many:
        front.send(INITIALIZE, INITIALIZED)
    for front in many:
        assert "result" in front.answer(0)
    assert len({fronts.process(front) for front in many}) == 1


@pytest.mark.requirement("T27.shared")
def test_other_stores_options_and_variables_have_other_processes(
    fronts: Fronts, workspace: Path, tmp_path: Path
) -> None:
    second = Path(shutil.copytree(workspace, tmp_path / "second"))
    started = [
        fronts.start(workspace),
        fronts.start(second),
        fronts.start(workspace, "--pipeline", "bm25"),
        fronts.start(workspace, "--set", "bm25.b=0.5"),
        fronts.start(workspace, SPECKIT_EVALUATION="off"),
    ]
    assert len({fronts.process(front) for front in started}) == len(started)
    # where and under which terminal a client runs changes no answer
    again = fronts.start(workspace, TERM="other", PATH=f"{os.environ['PATH']}:/nowhere")
    assert fronts.process(again) == fronts.process(started[0])


@pytest.mark.requirement("T27.shared")
def test_a_client_that_reads_nothing_holds_nobody_up(fronts: Fronts, workspace: Path) -> None:
    stalled, other = fronts.start(workspace), fronts.start(workspace)
    stalled.send(*({**PING, "id": number, "method": "tools/list"} for number in range(500)))
    stalled.process.send_signal(signal.SIGSTOP)
    for number in range(20):
        assert "structuredContent" in other.call(number, "memory_search", {"query": f"fusion {number}"})
    stalled.process.send_signal(signal.SIGCONT)
    assert {stalled.next()["id"] for _ in range(500)} == set(range(500))


@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_client_ends_by_a_signal_as_over_stdio(
    fronts: Fronts, workspace: Path, signal_number: int, status: int
) -> None:
    front = fronts.start(workspace)
    front.process.send_signal(signal_number)
    assert front.process.wait(PATIENCE) == status


def test_an_unusable_configuration_ends_the_client_with_the_error(fronts: Fronts, workspace: Path) -> None:
    ran = call(
        workspace,
        ["serve", "--shared", "--pipeline", "defualt"],
        env={"XDG_RUNTIME_DIR": str(fronts.folder)},
        spawned=True,
    )
    assert (ran.status, ran.out) == (2, "")
    assert "E121" in ran.err
