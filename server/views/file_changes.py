"""The file watcher of `index --watch` (feature I8): reports changes in batches until it is ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from types import FrameType

import click

from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES
from speckit_memory.config.workspace.settings import CONFIG_FILE
from speckit_memory.errors import SpeckitError

LOOK_MS = 500
"""Interval in milliseconds at which watched paths are checked for replacement."""
SETTLE_MS = 1_000
"""Changes within this many milliseconds of one another are reported together."""

_Places = dict[Path, tuple[int, int]]


def require_watching() -> None:
    """Raises E031 when the watching library is not installed."""
    if find_spec("watchfiles") is None:
        raise SpeckitError(
            "E031",
            "--watch needs the optional library 'watchfiles'",
            actions=("run `pip install 'speckit-memory[watch]'`", "leave --watch out and index again by hand"),
        )


@contextmanager
def until_told_to_end() -> Iterator[Event]:
    """A context that SIGINT and SIGTERM end like Ctrl-C, without an error.

    The event is set by the signal and ends `changes`, because Python may lose an exception raised during clean-up.
    """
    told = Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        told.set()
        raise KeyboardInterrupt

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with suppress(KeyboardInterrupt):
            yield told
        click.echo("no longer watching", err=True)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def changes(paths: Sequence[Path], root: Path, ended: Event) -> Iterator[None]:
    """Yields once when watching starts, and then after every change below the paths, until `ended` is set.

    A path may vanish and come back, also as another folder or file of that name, as with editors and checkouts. Only
    documents and folders count below the workspace `root`, and its configuration, because indexing writes files too.
    """
    known: _Places | None = None
    while not ended.is_set():
        there = _there(paths)
        if there:
            yield from _until_others(there, paths, root, ended)
        else:
            # the paths have vanished: report it once
            if known != there:
                yield
            ended.wait(LOOK_MS / 1000)
        known = there


def _until_others(there: _Places, paths: Sequence[Path], root: Path, ended: Event) -> Iterator[None]:
    """Like `changes`, until a path names another folder or file."""
    from watchfiles import watch

    from speckit_memory.memory.scanning import ignore_files
    from speckit_memory.memory.scanning.selection import SKIPPED_FOLDERS, TOOL_FOLDERS

    passed_over = SKIPPED_FOLDERS | TOOL_FOLDERS
    deciding = {root / CONFIG_FILE, ignore_files.NAME, ignore_files.OWN_NAME}

    def looked_at(_: object, name: str) -> bool:
        path = Path(name)
        below = path.relative_to(root).parts if path.is_relative_to(root) else path.parts[-1:]
        if path in deciding or path.name in deciding:
            return True
        # other files matter only when they vanish or are folders, so that writing reports there triggers nothing
        return passed_over.isdisjoint(below) and (path.suffix.lower() in DOCUMENT_SUFFIXES or not path.is_file())

    told = False
    with suppress(FileNotFoundError):  # the path has just vanished
        for found in watch(
            *there,
            watch_filter=looked_at,
            debounce=SETTLE_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
            stop_event=ended,
        ):
            if found or not told:  # the first timeout reports changes made before watching started
                told = True
                yield
            if _there(paths) != there:
                return


def _there(paths: Sequence[Path]) -> _Places:
    """The existing paths with their device and inode numbers."""
    found = {}
    for path in paths:
        with suppress(OSError):
            state = path.stat()
            found[path] = state.st_dev, state.st_ino
    return found
