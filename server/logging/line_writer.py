"""Writing to a descriptor whose reader may be slow, asleep or gone, without anybody waiting for it."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread, current_thread
from time import monotonic


class LineWriter:
    """A queue of lines and a thread that writes them. Whoever puts one in goes on at once."""

    def __init__(
        self, descriptor: int, *, most: int, lost: Callable[[int], bytes], failed: Callable[[OSError], None]
    ) -> None:
        """At most `most` bytes wait; what is put in beyond that is lost, 0 for no bound.

        `lost` makes the line that tells how many lines were, before the next one that is written. `failed` is told, by
        the thread, of an error; the line is lost then too.
        """
        self._descriptor = descriptor
        self._most = most
        self._tell = lost
        self._failed = failed
        self._lines: deque[bytes] = deque()
        self._changed = Condition()
        self._untold = 0
        self.waiting = 0
        """Bytes that are not written yet."""
        self.lost = 0
        """Lines that never will be."""
        self._thread = Thread(target=self._run, name=f"writer of {descriptor}", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Has a line written, or counts it as lost when too much waits already."""
        with self._changed:
            if self._most and self.waiting + len(line) > self._most:
                self._lose()
                return
            if self._untold:
                told, self._untold = self._tell(self._untold), 0
                self._lines.append(told)
                self.waiting += len(told)
            self._lines.append(line)
            self.waiting += len(line)
            self._changed.notify_all()

    def drain(self, seconds: float) -> bool:
        """Waits until all is written, so long at most; tells whether it is. The thread itself does not wait."""
        if current_thread() is self._thread:
            return False
        deadline = monotonic() + seconds
        with self._changed:
            while self.waiting and (left := deadline - monotonic()) > 0:
                self._changed.wait(left)
            return not self.waiting

    def _lose(self) -> None:
        self.lost += 1
        self._untold += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
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
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # the caller's end does not block, and is full
                poll = select.poll()
                poll.register(self._descriptor, select.POLLOUT)
                poll.poll()
