"""Non-blocking standard error for the server: if the client does not read it, only log lines are lost."""

from __future__ import annotations

import atexit
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock, Thread

from speckit_memory.server.logging.line_writer import LineWriter

MOST_WAITING = 1 << 20
"""Bytes of unread lines that are queued; a pipe buffers 64 KiB more."""
LONGEST_LINE = 64 << 10
"""Characters; one line must not displace all others."""
LAST_SECONDS = 0.5
"""How long the process waits on exit for the last lines to be read."""


class LogStream(io.TextIOBase):
    """Replaces `sys.stderr` and `sys.stdout` while serving; hands whole lines to a writing thread."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writer = LineWriter(descriptor, most=MOST_WAITING, lost=_lost_line, failed=lambda _error: None)
        self._lock = RLock()
        self._begun = ""

    @property
    def lost(self) -> int:
        """Number of lost lines."""
        return self._writer.lost

    def writable(self) -> bool:
        """Always True."""
        return True

    def fileno(self) -> int:
        """The descriptor, for child processes."""
        return self._descriptor

    def write(self, text: str, /) -> int:
        """Queues the complete lines; very long ones are cut."""
        with self._lock:
            lines = (self._begun + text).split("\n")
            # one character more than the limit, so that `_put` sees that the line was cut
            self._begun = lines.pop()[: LONGEST_LINE + 1]
        for line in lines:
            self._put(line)
        return len(text)

    def drain(self) -> None:
        """Waits up to `LAST_SECONDS` until the queued lines are written."""
        with self._lock:
            if self._begun:
                self._put(self._begun)
                self._begun = ""
        self._writer.drain(LAST_SECONDS)

    def end(self) -> None:
        """Writes what can be written at once, and closes the descriptor."""
        self.drain()
        self._writer.close()
        os.close(self._descriptor)

    def _put(self, line: str) -> None:
        cut = line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
        self._writer.put((cut + "\n").encode("utf-8", "backslashreplace"))


def _lost_line(lines: int) -> bytes:
    return json.dumps({"event": "log lines lost", "lines": lines, "level": "warning"}).encode() + b"\n"


def detach() -> LogStream:
    """Replaces Python's standard error and output, so that no write waits for a reader."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # a duplicate, as descriptor 2 may be redirected later
    stream = LogStream(os.dup(2))
    atexit.register(stream.drain)
    sys.stderr = sys.stdout = stream
    return stream


class ClientLogs(io.TextIOBase):
    """Replaces the standard streams of a process with several clients, each of which has a `LogStream` of its own.

    Lines written on behalf of a client go to its stream; all others, such as those of background work, go to every
    stream, as each client would have them of a process of its own.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self) -> None:
        self._streams: tuple[LogStream, ...] = ()

    @property
    def lost(self) -> int:
        """Number of lost lines of this client."""
        return sum(stream.lost for stream in self._addressed())

    def writable(self) -> bool:
        """Always True."""
        return True

    def write(self, text: str, /) -> int:
        """Queues the complete lines."""
        for stream in self._addressed():
            stream.write(text)
        return len(text)

    @contextmanager
    def client(self, descriptor: int) -> Iterator[None]:
        """Sends the lines that the block logs to a descriptor, which is closed at the end."""
        stream = LogStream(descriptor)
        self._streams += (stream,)
        token = _of_client.set(stream)
        try:
            yield
        finally:
            _of_client.reset(token)
            self._streams = tuple(other for other in self._streams if other is not stream)
            # it may wait for the reader, and so may not run in the event loop
            Thread(target=stream.end, name="last lines", daemon=True).start()

    def drain(self) -> None:
        """Waits up to `LAST_SECONDS` for each stream."""
        for stream in self._streams:
            stream.drain()

    def _addressed(self) -> tuple[LogStream, ...]:
        own = _of_client.get()
        return self._streams if own is None else (own,) if own in self._streams else ()


_of_client: ContextVar[LogStream | None] = ContextVar("of_client", default=None)


def share() -> ClientLogs:
    """Replaces Python's standard error and output by the streams of clients, of which there are none yet."""
    sys.stderr = sys.stdout = streams = ClientLogs()
    return streams


def lost_lines() -> int:
    """Number of lost log lines; 0 while standard error is written directly."""
    return sys.stderr.lost if isinstance(sys.stderr, LogStream | ClientLogs) else 0
