"""Writes to a descriptor from a background thread: a slow or missing reader does not block the callers."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread, current_thread
from time import monotonic

LOOK_AGAIN_MS = 100
"""How often a writer that waits for its reader looks whether it was closed."""


class LineWriter:
    """A queue of lines and a thread that writes them. `put` never blocks."""

    def __init__(
        self, descriptor: int, *, most: int, lost: Callable[[int], bytes], failed: Callable[[OSError], None]
    ) -> None:
        """At most `most` bytes wait, 0 for no bound; lines beyond that are lost.

        `lost` builds the line that reports a number of lost lines, written before the next line. `failed` is called in
        the writing thread with an error; the line is lost, too.
        """
        self._descriptor = descriptor
        self._most = most
        self._tell = lost
        self._failed = failed
        self._lines: deque[bytes] = deque()
        self._changed = Condition()
        self._untold = 0
        self.waiting = 0
        """Bytes not written yet."""
        self.lost = 0
        """Lines dropped or not written."""
        self._closed = False
        self._thread = Thread(target=self._run, name=f"writer of {descriptor}", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Queues a line, or counts it as lost if the queue is full."""
        with self._changed:
            if self._most and self.waiting + len(line) > self._most:
                self._lose()
                return
            # report losses before the next line, so that the reader sees where lines are missing
            if self._untold:
                told, self._untold = self._tell(self._untold), 0
                self._lines.append(told)
                self.waiting += len(told)
            self._lines.append(line)
            self.waiting += len(line)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Waits until all is written, at most `seconds`; returns whether it is. Returns at once in the writing
        thread."""
        if current_thread() is self._thread:
            return False
        deadline = monotonic() + seconds
        with self._changed:
            while self.waiting and (left := deadline - monotonic()) > 0:
                self._changed.wait(left)
            return not self.waiting

    def close(self) -> None:
        """Ends the writing thread; lines that are not written yet are dropped. The descriptor stays open."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _lose(self) -> None:
        self.lost += 1
        self._untold += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                line = self._lines.popleft()
            try:
                self._write(line)
            except OSError as error:
                with self._changed:
                    self._lose()
                self._failed(error)
            with self._changed:
                self.waiting -= len(line)
                self._changed.notify_all()

    def _write(self, line: bytes) -> None:
        # a memoryview, so that partial writes do not copy the rest
        rest = memoryview(line)
        ready = select.poll()
        ready.register(self._descriptor, select.POLLOUT)
        while rest and not self._closed:
            # A descriptor that is ready takes this much without waiting, so that `close` need not wait for a reader.
            if ready.poll(LOOK_AGAIN_MS):
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._descriptor, rest[: select.PIPE_BUF]) :]
