"""Progress on standard error: a bar on a terminal, else a line every few seconds. Standard output stays untouched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TextIO

BAR_CELLS = 30
REDRAW_SECONDS = 0.1
LINE_SECONDS = 5.0


class ProgressReporter:
    """Shows how far a long piece of work is; use as a context manager, which removes the bar at the end.

    `clock` gives seconds and only decides how often something is written.
    """

    def __init__(self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = monotonic) -> None:
        self.label = label
        self.stream = stream or sys.stderr
        self.clock = clock
        self.bar = self.stream.isatty()
        self.next_write = clock() + (0.0 if self.bar else LINE_SECONDS)
        self.drawn = False

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def update(self, done: int, total: int, phase: str = "") -> None:
        """`done` of `total` items of a phase are finished; `total` 0 while it is not known."""
        now = self.clock()
        if now < self.next_write and not (self.bar and done == total):
            return
        count = f"{done:,} of {total:,}" if total else f"{done:,}"
        label = f"{self.label}: {phase}" if phase else self.label
        if self.bar:
            filled = BAR_CELLS * done // total if total else 0
            self.stream.write(f"\r\x1b[K{label} [{'█' * filled}{'·' * (BAR_CELLS - filled)}] {count}")
            self.drawn = True
        else:
            self.stream.write(f"{label}: {count}\n")
        self.stream.flush()
        self.next_write = now + (REDRAW_SECONDS if self.bar else LINE_SECONDS)
