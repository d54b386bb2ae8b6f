"""Shows progress on standard error: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, TextIO

import click

from speckit_memory.server.console import terminal
from speckit_memory.server.console.output import printable

if TYPE_CHECKING:
    from rich.progress import Progress, Task

BAR_CELLS = 30
LEAST_BAR_CELLS = 8
LEAST_LABEL_CELLS = 5
REDRAW_SECONDS = 0.1
LINE_SECONDS = 5.0
ERASE = "\r\x1b[K"


class ProgressReporter:
    """Shows the progress of long work; as a context manager it removes the bar at the end.

    `clock` returns seconds; it determines how often output is written, and the rate.
    """

    def __init__(self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = monotonic) -> None:
        self.label = label
        self.stream = stream or sys.stderr
        self.clock = clock
        self.bar = self.stream.isatty() and not terminal.plain()
        self.now = clock()
        self.next_write = self.now + (0.0 if self.bar else LINE_SECONDS)
        self.phase = ""
        self.estimates: Progress | None = None
        self.drawn = False

    def __enter__(self) -> ProgressReporter:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.drawn:
            self.stream.write(ERASE)
            self.stream.flush()

    def update(self, done: int, total: int, phase: str = "") -> None:
        """Reports that `done` of `total` items of a phase are finished; `total` is 0 while unknown."""
        self.now = self.clock()
        task = self._measured(done, total, phase)
        if self.now < self.next_write and not (self.bar and done == total):
            return
        label = printable(f"{self.label}: {phase}" if phase else self.label)
        if self.bar:
            room = (terminal.columns(self.stream) or terminal.USUAL_COLUMNS) - 1  # the last cell would end the line
            self.stream.write(ERASE + line(label, task, room))
            self.drawn = True
        else:
            self.stream.write(f"{label}: {', '.join(filter(None, (_count(task), _rate(task), _time_left(task))))}\n")
        self.stream.flush()
        self.next_write = self.now + (REDRAW_SECONDS if self.bar else LINE_SECONDS)

    def _measured(self, done: int, total: int, phase: str) -> Task:
        """The phase as a task of rich, used for its rate and remaining time; rich draws nothing itself."""
        if self.estimates is None or phase != self.phase:
            from rich.progress import Progress

            self.estimates, self.phase = Progress(auto_refresh=False, get_time=lambda: self.now), phase
            self.estimates.add_task(phase)
        task = self.estimates.tasks[0]
        self.estimates.update(task.id, completed=done, total=total or None)
        return task


def line(label: str, task: Task, room: int) -> str:
    """One line of at most `room` cells: label, bar, count, rate and time left, as many of them as fit."""
    from speckit_memory.server.console.terminal import cells, cut_to_cells

    count, rate, left = _count(task), _rate(task), _time_left(task)
    share = f"{task.percentage:.0f} %" if task.total else count
    layouts = [(count, rate, left), (count, left), (share, left), (share, left.removesuffix(" left"))]
    # layouts from most to least detail: take the first that leaves enough space for the label
    for place, layout in enumerate(layouts):
        figures = " ".join(filter(None, layout))
        last = place == len(layouts) - 1
        barred = bool(task.total) and not last
        free = room - cells(figures) - 1 - (LEAST_BAR_CELLS + 3 if barred else 0)
        if last or free >= min(cells(label), BAR_CELLS):
            break
    label = cut_to_cells(label, max(free, LEAST_LABEL_CELLS))
    bar = _bar(task, min(BAR_CELLS, LEAST_BAR_CELLS + free - cells(label))) if barred else ""
    return " ".join(filter(None, (label, bar, figures)))


def _bar(task: Task, size: int) -> str:
    filled = int(size * task.percentage) // 100
    done = "█" * filled
    return f"[{done if terminal.colour() is False else click.style(done, fg='cyan')}{'·' * (size - filled)}]"


def _count(task: Task) -> str:
    return f"{task.completed:,.0f} of {task.total:,.0f}" if task.total else f"{task.completed:,.0f}"


def _rate(task: Task) -> str:
    if not task.speed:
        return ""
    if task.speed < 0.1:
        return f"{task.speed * 60:.1f}/min"
    return f"{task.speed:,.0f}/s" if task.speed >= 10 else f"{task.speed:.1f}/s"


def _time_left(task: Task) -> str:
    seconds = task.time_remaining
    if not task.total or seconds is None:
        return ""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02}" if hours else f"{minutes}") + f":{seconds:02} left"
