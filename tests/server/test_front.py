"""The client's end of `serve --shared`, with a test in the place of the client and of the process."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NoReturn

import pytest
from raw_server import INITIALIZE, INITIALIZED, call_of

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.jsonrpc.lines import LONGEST_LINE
from speckit_memory.server.transport import front as front_module
from speckit_memory.server.transport import shared_socket
from speckit_memory.server.transport.front import MOST_SHORT, Front
from speckit_memory.server.transport.shared_socket import LONGEST_PATH, SharedOptions, SharedSocket, is_of_user

READ = call_of("read", "memory_search", {"query": "fusion"})
WRITE = call_of("write", "memory_save", {"content": "text"})
PATIENCE = 20.0


class Process:
    """The end of a connection that a process has."""

    def __init__(self, end: socket.socket) -> None:
        self.end_of_connection = end
        end.settimeout(PATIENCE)
        greeting, descriptors, _, _ = socket.recv_fds(end, 1, 1)
        self.greeting = greeting
        os.close(descriptors[0])
        self._lines = end.makefile("rb")

    def welcome(self) -> None:
        self.say({"profile": "f", "reading_tools": ["memory_search"]})

    def say(self, *messages: object) -> None:
        self.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def send(self, data: bytes) -> None:
        self.end_of_connection.sendall(data)

    def hear(self, count: int) -> list[Any]:
        return [json.loads(self._lines.readline()) for _ in range(count)]

    def has_ended(self) -> bool:
        """Whether the front has closed its end and says no more."""
        return self._lines.readline() == b""

    def end(self) -> None:
        self._lines.close()
        self.end_of_connection.close()


class Place:
    """Connects to processes that the test plays, one after the other."""

    def __init__(self) -> None:
        self._ends: list[socket.socket] = []
        self._here: list[socket.socket] = []
        self._processes: list[Process] = []
        for _ in range(MOST_SHORT + 1):
            here, there = socket.socketpair()
            self._here.append(here)
            self._ends.append(there)

    def connect(self) -> socket.socket:
        return self._here.pop(0)

    def next(self) -> Process:
        self._processes.append(Process(self._ends.pop(0)))
        return self._processes[-1]

    def close(self) -> None:
        for process in self._processes:
            process.end()
        for end in (*self._ends, *self._here):
            end.close()


class Client:
    """A front between two pipes, and the status with which it ended."""

    def __init__(self, place: Place) -> None:
        source, self.into = os.pipe()
        out, sink = os.pipe()
        self.out = os.fdopen(out, "rb")
        self.statuses: list[int] = []
        self._descriptors = (source, sink)

        def exit_with(status: int) -> NoReturn:
            self.statuses.append(status)
            raise SystemExit(status)

        self._front = Front(place, source, sink, exit_with)  # type: ignore[arg-type]
        self._threads = [
            Thread(target=until_exit, args=work, daemon=True)
            for work in ((self._front.relay,), (self._front.forward, os.getppid()))
        ]
        for thread in self._threads:
            thread.start()

    def send(self, *messages: object) -> None:
        for message in messages:
            os.write(self.into, json.dumps(message).encode() + b"\n")

    def hear(self, count: int = 1) -> list[Any]:
        return [json.loads(self.out.readline()) for _ in range(count)]

    def close_input(self) -> None:
        os.close(self.into)
        self.into = -1

    def ended(self) -> list[int]:
        """The status with which its thread for answers has ended."""
        self._threads[0].join(PATIENCE)
        return self.statuses[:1]

    def close(self, place: Place) -> None:
        if self.into >= 0:
            os.close(self.into)
        self._threads[1].join(PATIENCE)  # from here on the end of a process is no reason to look for another one
        place.close()
        self._threads[0].join(PATIENCE)
        assert not any(thread.is_alive() for thread in self._threads)
        self._front._connection.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self.out.close()


def until_exit(work: Callable[..., NoReturn], *arguments: int) -> None:
    with suppress(SystemExit):
        work(*arguments)


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def client(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(front_module, "LAST_SECONDS", 0.05)
    monkeypatch.setattr(front_module, "START_SECONDS", 0.05)
    client = Client(place)
    yield client
    client.close(place)


def answer(request: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": {}}


def test_lines_pass_both_ways_as_they_are(client: Client, place: Place) -> None:
    process = place.next()
    assert process.greeting == b"?"
    process.welcome()
    client.send(INITIALIZE, INITIALIZED, "no message")
    assert process.hear(3) == [INITIALIZE, INITIALIZED, "no message"]
    told = {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}
    process.say(answer(INITIALIZE), told)
    assert client.hear(2) == [answer(INITIALIZE), told]


@pytest.mark.requirement("T27.shared")
def test_the_session_and_the_calls_that_read_are_brought_to_the_next_process(client: Client, place: Place) -> None:
    first = place.next()
    first.welcome()
    subscribed = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "memory://a.md"}}
    client.send(INITIALIZE, INITIALIZED, subscribed)
    first.hear(3)
    first.say(answer(INITIALIZE), answer(subscribed))
    assert client.hear(2) == [answer(INITIALIZE), answer(subscribed)]
    listed, taken_back = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, call_of(3, "memory_search")
    client.send(READ, WRITE, listed, taken_back)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
    first.hear(5)
    first.end()

    [refused] = client.hear()
    assert (refused["id"], refused["error"]["code"]) == ("write", -32603)
    assert refused["error"]["data"]["error"]["code"] == "E134"
    second = place.next()
    assert second.greeting == b"f"
    second.welcome()
    again = second.hear(5)
    assert [message.get("method") for message in again] == [
        "initialize", "notifications/initialized", "resources/subscribe", "tools/call", "tools/list",
    ]  # fmt: skip
    assert again[3:] == [READ, listed]
    # the client has had the answers to the first of them, and hears what may have changed meanwhile
    second.say(answer(again[0]), answer(again[2]), answer(READ))
    changed, updated, read = client.hear(3)
    assert changed["method"] == "notifications/resources/list_changed"
    assert (updated["method"], updated["params"]) == ("notifications/resources/updated", {"uri": "memory://a.md"})
    assert read == answer(READ)


def test_a_call_is_repeated_once(client: Client, place: Place) -> None:
    client.send(READ)
    for _ in range(2):
        process = place.next()
        process.welcome()
        assert process.hear(1) == [READ]
        process.end()
    [refused] = client.hear()
    assert (refused["id"], "twice" in refused["error"]["message"]) == ("read", True)


def test_what_a_process_did_not_read_is_sent_to_the_next_one_whatever_it_does(client: Client, place: Place) -> None:
    client.send(WRITE)
    first = place.next()
    first.hear(1)
    first.end()  # before it has greeted, which it does before it reads
    second = place.next()
    second.welcome()
    assert second.hear(1) == [WRITE]


def test_the_front_gives_up_when_no_process_stays(
    client: Client, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    for _ in range(MOST_SHORT):
        place.next().end()
    assert client.ended() == [1]
    assert "E134" in capsys.readouterr().err


def test_a_refusal_of_the_process_ends_the_front(
    client: Client, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.next().say({"problems": "error E121: no preset\n", "status": 2})
    assert client.ended() == [2]
    assert capsys.readouterr().err == "error E121: no preset\n"


def test_a_line_that_is_too_long_is_refused_and_not_passed_on(client: Client, place: Place) -> None:
    process = place.next()
    process.welcome()
    writer = Thread(
        target=lambda: [
            os.write(client.into, b'{"jsonrpc":"2.0","id":5,"params":"'),
            *(os.write(client.into, b"a" * (1 << 20)) for _ in range(1 + (LONGEST_LINE >> 20))),
            os.write(client.into, b'"}\n'),
        ]
    )
    writer.start()
    [refused] = client.hear()
    writer.join()
    assert (refused["id"], refused["error"]["code"]) == (5, -32600)
    client.send(READ)
    assert process.hear(1) == [READ]


def test_half_a_line_of_a_killed_process_does_not_reach_the_client(client: Client, place: Place) -> None:
    client.send(READ)
    first = place.next()
    first.welcome()
    first.hear(1)
    first.send(b'{"jsonrpc":"2.0","id":"read","res')
    first.end()
    second = place.next()
    second.welcome()
    second.hear(1)
    second.say(answer(READ))
    assert client.hear() == [answer(READ)]


def test_the_end_of_the_input_is_passed_on_and_the_last_answers_arrive(client: Client, place: Place) -> None:
    process = place.next()
    process.welcome()
    client.send(READ)
    process.hear(1)
    client.close_input()
    assert process.has_ended()
    process.say(answer(READ))
    assert client.hear() == [answer(READ)]
    process.end()
    assert client.ended() == [0]


@pytest.mark.requirement("T27.shared")
def test_a_process_that_ends_after_the_input_is_replaced_while_calls_are_open(
    client: Client, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_module, "LAST_SECONDS", PATIENCE)
    first = place.next()
    first.welcome()
    client.send(READ, WRITE)
    client.close_input()
    first.hear(2)
    first.end()
    [refused] = client.hear()
    assert (refused["id"], refused["error"]["data"]["error"]["code"]) == ("write", "E134")
    second = place.next()
    second.welcome()
    assert second.hear(1) == [READ]
    monkeypatch.setattr(front_module, "LAST_SECONDS", 0.05)
    second.say(answer(READ))
    assert client.hear() == [answer(READ)]
    assert second.has_ended()
    second.end()
    assert client.ended() == [0]


# the socket


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder in the place of the user's runtime folder, with a path that is short enough."""
    with TemporaryDirectory(prefix="run-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


def key_of(root: Path, common: Common | None = None, **more: Any) -> str:
    return options_of(root, common, **more).key()


def options_of(root: Path, common: Common | None = None, **more: Any) -> SharedOptions:
    values = {"profile": None, "warm_up": True, "cache_seconds": 60, "watch": False} | more
    return SharedOptions(common or Common(), root, **values)


def refusal_of(root: Path) -> SpeckitError:
    with pytest.raises(SpeckitError, match="E036") as raised:
        SharedSocket.of(options_of(root)).connect()
    return raised.value


@pytest.mark.requirement("T27.shared")
def test_the_key_is_that_of_all_that_decides_answers(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("SPECKIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "workspace"
    root.mkdir()
    first = key_of(root)
    others = [
        key_of(tmp_path),
        key_of(root, Common(db=tmp_path / "other.db")),
        key_of(root, Common(pipeline="bm25")),
        key_of(root, Common(overrides={"bm25.b": "0.5"})),
        key_of(root, profile="core"),
        key_of(root, warm_up=False),
        key_of(root, cache_seconds=0),
        key_of(root, watch=True),
    ]
    for name in ("SPECKIT_EMBEDDER", "SPECKIT_PIPELINE", "OPENAI_API_KEY", "HOME", "HTTPS_PROXY", "OMP_NUM_THREADS"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "another")
            others.append(key_of(root))
    assert len({first, *others}) == len(others) + 1
    for name in ("PATH", "TERM", "TMPDIR", "SHELL", "XDG_SESSION_ID"):
        monkeypatch.setenv(name, "/another")
    monkeypatch.chdir(tmp_path)
    assert key_of(root) == first
    # a relative path of an option is another one elsewhere
    relative = key_of(root, Common(pipeline="mine.yaml"))
    monkeypatch.chdir(root)
    assert key_of(root, Common(pipeline="mine.yaml")) != relative


def test_the_socket_lies_in_a_folder_of_its_user_alone(tmp_path: Path, runtime: Path) -> None:
    place = SharedSocket.of(options_of(tmp_path))
    assert place.path.parent == runtime / "speckit-memory"
    assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700


def test_a_path_too_long_for_a_socket_gives_way_to_the_temporary_folder(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = runtime / ("d" * LONGEST_PATH)
    deep.mkdir()
    temporary = runtime / "t"
    temporary.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    monkeypatch.setenv("TMPDIR", str(temporary))
    assert SharedSocket.of(options_of(tmp_path)).path.parent == temporary / f"speckit-memory-{os.geteuid()}"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert SharedSocket.of(options_of(tmp_path)).path.parent.parent == temporary


@pytest.mark.requirement("T27.shared")
def test_a_folder_that_others_can_enter_or_own_is_refused(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runtime / "speckit-memory"
    folder.mkdir()
    folder.chmod(0o755)
    assert f"chmod 700 {folder}" in str(refusal_of(tmp_path).problems[0].actions)
    folder.chmod(0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert "not a folder of yours" in str(refusal_of(tmp_path))
    monkeypatch.undo()
    folder.rmdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    folder.symlink_to(tmp_path)
    assert "not a folder of yours" in str(refusal_of(tmp_path))


@pytest.mark.usefixtures("modes_respected")
def test_a_folder_that_cannot_be_written_is_an_error_that_says_what_to_do(tmp_path: Path, runtime: Path) -> None:
    runtime.chmod(0o500)
    try:
        problem = refusal_of(tmp_path).problems[0]
    finally:
        runtime.chmod(0o700)
    assert "cannot be made" in problem.message
    assert "leave --shared out" in " ".join(problem.actions)


@pytest.mark.requirement("T27.shared")
def test_another_users_socket_and_other_files_at_its_place_are_refused(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = SharedSocket.of(options_of(tmp_path))
    place.path.write_text("no socket")
    assert "not a socket of yours" in str(refusal_of(tmp_path))
    assert place.path.read_text() == "no socket"
    place.path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.path))
        listener.listen()
        with monkeypatch.context() as patched:
            patched.setattr(shared_socket, "is_of_user", lambda _connection: False)
            assert "another user listens" in str(refusal_of(tmp_path))
        place.connect().close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the user of the other end")
def test_the_user_of_the_other_end_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        assert is_of_user(here)
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
        assert not is_of_user(here)


def test_a_system_without_unix_sockets_names_the_other_ways(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    assert "leave --shared out" in " ".join(refusal_of(tmp_path).problems[0].actions)
