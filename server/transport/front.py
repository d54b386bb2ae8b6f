"""A client's end of `serve --shared`: passes lines between the client and the process that serves the store.

It parses what it must to survive the end of that process: then it connects to another one, opens the client's session
there as it was, and sends the calls again that have no answer and read only. It imports little, as there is one front
per client.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any, NoReturn

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.failures import CLOSED_PIPE, internal, show
from speckit_memory.server.jsonrpc.lines import LONGEST_LINE, Lines, TooLong, is_id
from speckit_memory.server.transport.shared_socket import SharedSocket

CHUNK = 1 << 16
LOOK_SECONDS = 2.0
"""How often to look whether the parent process has ended, as over stdio."""
LOOK_AGAIN_MS = 100
LAST_SECONDS = 3.0
"""How long the last answers may take once the client has closed its end, and how long the process may take to close
its own."""
LAST_LOOK_SECONDS = 0.01
START_SECONDS = 60.0
"""How long a client that has closed its end waits for the process to start: it may have asked something before."""
SHORT_SECONDS = 5.0
MOST_SHORT = 5
"""Processes in a row that ended within so many seconds, or at their start, after which the front gives up."""
INIT = 1
STANDARD_ERROR = 2
DECIDE = b"?"
"""The greeting of a client that has no tool profile yet; any other one sends the first letter of its profile."""
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603
_HANDSHAKE = ("initialize", "notifications/initialized")


@dataclass(slots=True)
class PendingRequest:
    """A request without an answer."""

    line: bytes
    tool: str | None
    """The tool that it calls; None for other requests, which only read."""
    is_repeated: bool = False


class Front:
    """The connection of a client. One thread takes its lines (`forward`), another brings it answers (`relay`)."""

    def __init__(
        self, place: SharedSocket, source: int, sink: int, exit_with: Callable[[int], NoReturn] = os._exit
    ) -> None:
        """Connects. `exit_with` ends this process with a status. Raises E036 if no process can be had."""
        self._place = place
        self._source = source
        self._sink = sink
        self._exit_with = exit_with
        self._sending = Lock()
        """Held while lines are sent, so that none is lost when the connection changes."""
        self._writing = Lock()
        self._pending: dict[int | str, PendingRequest] = {}
        self._session_lines: dict[tuple[str, str], bytes] = {}
        """What opens the session again: the handshake, and subscriptions by URI."""
        self._replacements: dict[int | str, bytes] = {}
        """The ids of requests that this front sends itself, and the notification that the client gets instead of the
        answer: a resource may have changed while no process served it."""
        self._profile = DECIDE
        self._reading_tools: frozenset[str] | None = None
        """The tools that only read; None until the process has said so, which is before it reads any request."""
        self._greeted = Event()
        self._is_ending = False
        self._short_lives = 0
        self._hung_up = select.poll()
        self._hung_up.register(source, 0)  # no events: reports only hang-ups
        self._connect()

    def _connect(self) -> None:
        self._connection = self._place.connect()
        self._connected_at = time.monotonic()
        self._reading_tools = None
        with suppress(OSError):  # `relay` notices
            socket.send_fds(self._connection, [self._profile], [STANDARD_ERROR])

    def forward(self, parent: int) -> NoReturn:
        """Passes the client's lines on until it closes its end or the process `parent` is no longer the parent."""
        lines = Lines()
        while chunk := self._read(parent):
            for line in lines.feed(chunk):
                self._forward(line)
        for line in lines.end():
            self._forward(line)
        self._end()

    def _read(self, parent: int) -> bytes:
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        while not ready.poll(1000 * LOOK_SECONDS):
            if parent > INIT and os.getppid() != parent:
                return b""
        return os.read(self._source, CHUNK)

    def _end(self) -> NoReturn:
        """Passes the end of the input on once every call has its answer, or no longer waits for it: until then a
        process that ends is replaced as ever. `relay` ends this process when the connection does."""
        self._greeted.wait(START_SECONDS)
        deadline = time.monotonic() + LAST_SECONDS
        while self._pending and time.monotonic() < deadline:
            time.sleep(LAST_LOOK_SECONDS)
        with self._sending:
            self._is_ending = True
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)
        time.sleep(LAST_SECONDS)
        self._exit_with(0)

    def _forward(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._refuse(line.request_id, INVALID_REQUEST, f"a message has at most {LONGEST_LINE:,} bytes")
            return
        with self._sending:
            self._note(line)
            self._send(line)

    def _note(self, line: bytes) -> None:
        """Keeps what has to be sent again if the process ends."""
        message = _parsed(line)
        method, request_id, params = message.get("method"), message.get("id"), message.get("params")
        params = params if isinstance(params, dict) else {}
        uri = params.get("uri")
        if method in _HANDSHAKE:
            self._session_lines[method, ""] = line
        elif method == "resources/subscribe" and isinstance(uri, str):
            self._session_lines[method, uri] = line
        elif method == "resources/unsubscribe":
            self._session_lines.pop(("resources/subscribe", str(uri)), None)
        elif method == "notifications/cancelled" and is_id(params.get("requestId")):
            self._pending.pop(params["requestId"], None)  # it gets no answer
        if isinstance(method, str) and request_id is not None and is_id(request_id):
            tool = str(params.get("name")) if method == "tools/call" else None
            self._pending[request_id] = PendingRequest(line, tool)

    def _send(self, line: bytes) -> None:
        """Sends a line; an error is left to `relay`. Ends if the client has gone while the process takes no more."""
        rest = memoryview(line + b"\n")
        ready = select.poll()
        ready.register(self._connection, select.POLLOUT)
        with suppress(OSError):
            while rest:
                if ready.poll(LOOK_AGAIN_MS):
                    with suppress(BlockingIOError):
                        rest = rest[self._connection.send(rest, socket.MSG_DONTWAIT) :]
                elif (
                    self._hung_up.poll(0)
                    and self._greeted.wait(START_SECONDS)  # what it sent before its end is read once the process runs
                    and not ready.poll(1000 * LAST_SECONDS)
                ):
                    self._exit_with(0)

    def relay(self) -> NoReturn:
        """Passes the lines of the process on to the client, and replaces the process when it ends."""
        try:
            while True:
                for line in self._lines():
                    self._take(line)
                if self._is_ending:
                    self._exit_with(0)
                self._reconnect()
        except SpeckitError as error:
            self._exit_with(show(error, as_json=False))
        except Exception as error:  # the other thread would wait for ever
            self._exit_with(show(internal(error), as_json=False))

    def _lines(self) -> Iterator[bytes]:
        """The whole lines of the process until it ends; the first one is for this front."""
        lines = Lines()
        with suppress(ConnectionError):
            while chunk := self._connection.recv(CHUNK):
                yield from (line for line in lines.feed(chunk) if isinstance(line, bytes))

    def _take(self, line: bytes) -> None:
        if self._reading_tools is None:
            self._welcome(_parsed(line))
            return
        if not self._replacements:
            self._write(line)
            self._settle(_parsed(line))
        elif (message := _parsed(line)).get("id") in self._replacements and "method" not in message:
            self._write(self._replacements.pop(message["id"]))
        else:
            self._write(line)
            self._settle(message)

    def _settle(self, message: dict[str, Any]) -> None:
        if "method" not in message and is_id(message.get("id")):
            self._pending.pop(message["id"], None)

    def _welcome(self, message: dict[str, Any]) -> None:
        """Reads the first line of a process. Ends if it refuses to serve this client."""
        if problems := message.get("problems"):
            sys.stderr.write(problems)
            self._exit_with(message["status"])
        self._greeted.set()
        self._profile = message["profile"].encode()
        self._reading_tools = frozenset(message["reading_tools"])

    def _reconnect(self) -> None:
        """Connects to another process, and brings the client's session there.

        Requests that changed something, or that have been repeated before, get an error: the process may have ended
        after it carried them out, or because of them. If it has not greeted, it has not read any.
        """
        with self._sending:
            is_short = self._reading_tools is None or time.monotonic() - self._connected_at < SHORT_SECONDS
            self._short_lives = self._short_lives + 1 if is_short else 0
            if self._short_lives == MOST_SHORT:
                raise SpeckitError("E134", f"{MOST_SHORT} processes of the server ended soon after their start")
            time.sleep(0.1 * self._short_lives)
            if (reading := self._reading_tools) is not None:
                for request_id, request in list(self._pending.items()):
                    is_safe = request.tool is None or request.tool in reading
                    if request.is_repeated or not is_safe:
                        del self._pending[request_id]
                        self._refuse_interrupted(request_id, request)
                    request.is_repeated = True
            self._connection.close()
            self._connect()
            self._send_again()

    def _send_again(self) -> None:
        self._replacements.clear()
        waiting = {request.line for request in self._pending.values()}
        for line in self._session_lines.values():
            if line in waiting:
                continue
            message = _parsed(line)
            if "id" in message:  # answered before
                message["id"] = f"speckit-front-{len(self._replacements)}"
                self._replacements[message["id"]] = _change_of(message)
            self._send(json.dumps(message).encode())
        for request in self._pending.values():
            self._send(request.line)

    def _refuse_interrupted(self, request_id: int | str, request: PendingRequest) -> None:
        what = request.tool or "this request"
        if request.is_repeated:
            reason = f"the process of the server ended twice during {what}, and was replaced; do not repeat it as it is"
        else:
            reason = (
                f"the process of the server ended during {what}, which may have been carried out, and was replaced; "
                "look whether it was (memory_list, memory_search) before you repeat it"
            )
        error = SpeckitError("E134", reason)
        self._refuse(request_id, INTERNAL_ERROR, str(error.problems[0]), error.as_json())

    def _refuse(self, request_id: int | str | None, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message} | ({"data": data} if data else {})
        self._write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode())

    def _write(self, line: bytes) -> None:
        """Writes a line to the client; ends if the client has closed the pipe."""
        rest = memoryview(line + b"\n")
        ready = select.poll()
        ready.register(self._sink, select.POLLOUT)
        with self._writing:
            try:
                while rest:
                    ready.poll()  # the client may have made it non-blocking
                    with suppress(BlockingIOError):
                        rest = rest[os.write(self._sink, rest) :]
            except BrokenPipeError:
                self._exit_with(CLOSED_PIPE)
            except OSError:
                self._exit_with(1)


def _parsed(line: bytes) -> dict[str, Any]:
    """The message of a line; {} for a line that the server refuses."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _change_of(request: dict[str, Any]) -> bytes:
    """The notification that the list of resources, or the resource that a request subscribes to, may have changed."""
    change: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}
    if request["method"] == "resources/subscribe":
        change |= {"method": "notifications/resources/updated", "params": {"uri": request["params"]["uri"]}}
    return json.dumps(change).encode()


def serve_front(place: SharedSocket) -> NoReturn:
    """Passes lines on until the client closes its end, its process ends, or a signal arrives; then ends the process.

    Raises E036 if no process can be had.
    """
    parent = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: os._exit(128 + received))
    front = Front(place, 0, 1)
    Thread(target=front.relay, name="relay", daemon=True).start()
    front.forward(parent)
