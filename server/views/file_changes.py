"""What `index --watch` waits for (feature I8): changes of files, told once for many, until somebody ends it."""

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
"""So often it is asked whether a watched path is still the same folder or file."""
SETTLE_MS = 1_000
"""Changes that follow one another are told together, after at most so long."""

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
    """A block that SIGINT and SIGTERM end: what it is at is ended as by Ctrl-C, and that is no error.

    The event is set from then on, by which `changes` ends: Python loses what a signal raises where it tidies up.
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
    """Yields once when it watches, and then whenever something below the paths has changed, until `ended` is set.

    A path may go and come back, also as another folder or file of the name, as editors and checkouts do. What programs
    write below the workspace `root` is not looked at, the workspace's configuration apart: indexing writes too.
    """
    known: _Places | None = None
    while not ended.is_set():
        there = _there(paths)
        if there:
            yield from _until_others(there, paths, root, ended)
        else:
            if known != there:
                yield
            ended.wait(LOOK_MS / 1000)
        known = there


def _until_others(there: _Places, paths: Sequence[Path], root: Path, ended: Event) -> Iterator[None]:
    """As `changes`, until other folders or files have the names."""
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
        # of what is no document only a folder matters, or that something went: where reports are written to is neither
        return passed_over.isdisjoint(below) and (path.suffix.lower() in DOCUMENT_SUFFIXES or not path.is_file())

    told = False
    with suppress(FileNotFoundError):  # it went a moment ago
        for found in watch(
            *there,
            watch_filter=looked_at,
            debounce=SETTLE_MS,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=True,
            stop_event=ended,
        ):
            if found or not told:  # what changed before it watched is told by the first look
                told = True
                yield
            if _there(paths) != there:
                return


def _there(paths: Sequence[Path]) -> _Places:
    """Those of the paths that are there, with the device and number by which the system knows each."""
    found = {}
    for path in paths:
        with suppress(OSError):
            state = path.stat()
            found[path] = state.st_dev, state.st_ino
    return found
