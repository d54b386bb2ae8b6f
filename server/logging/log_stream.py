"""Standard error while serving: a client that never reads it loses lines, and nothing else."""

from __future__ import annotations

import atexit
import io
import json
import os
import sys
from threading import RLock

from speckit_memory.server.logging.line_writer import LineWriter

MOST_WAITING = 1 << 20
"""Bytes of lines that nobody has read yet; a pipe holds 64 KiB more."""
LONGEST_LINE = 64 << 10
"""Bytes; one line must not take the place of all others."""
LAST_SECONDS = 0.5
"""How long the process waits at its end for somebody to read the last lines."""


class LogStream(io.TextIOBase):
    """What `sys.stderr` and `sys.stdout` are while serving: whole lines, handed to a thread."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writer = LineWriter(descriptor, most=MOST_WAITING, lost=_lost_line, failed=lambda _error: None)
        self._lock = RLock()
        self._begun = ""

    @property
    def lost(self) -> int:
        """How many lines nobody will ever read."""
        return self._writer.lost

    def writable(self) -> bool:
        """True."""
        return True

    def fileno(self) -> int:
        """The descriptor, for child processes."""
        return self._descriptor

    def write(self, text: str, /) -> int:
        """Hands over the lines that are complete; a very long one is cut."""
        with self._lock:
            lines = (self._begun + text).split("\n")
            self._begun = lines.pop()[: LONGEST_LINE + 1]
        for line in lines:
            self._put(line)
        return len(text)

    def drain(self) -> None:
        """Waits a moment for the lines that nobody has read yet."""
        with self._lock:
            if self._begun:
                self._put(self._begun)
                self._begun = ""
        self._writer.drain(LAST_SECONDS)

    def _put(self, line: str) -> None:
        cut = line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"
        self._writer.put((cut + "\n").encode("utf-8", "backslashreplace"))


def _lost_line(lines: int) -> bytes:
    return json.dumps({"event": "log lines lost", "lines": lines, "level": "warning"}).encode() + b"\n"


def detach() -> LogStream:
    """From now on nothing that writes to Python's standard error or output waits for a reader."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    stream = LogStream(os.dup(2))
    atexit.register(stream.drain)
    sys.stderr = sys.stdout = stream
    return stream


def lost_lines() -> int:
    """How many lines of the log were lost, 0 while standard error is written to directly."""
    return sys.stderr.lost if isinstance(sys.stderr, LogStream) else 0
