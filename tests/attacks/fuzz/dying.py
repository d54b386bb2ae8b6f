"""What a process leaves that is killed at some point: the files as they are then, without any end of what it did.

A point is a statement of SQLite. Whatever was written until then is in the files, as it is where a process is really
killed; nothing is written after that. `killed` kills a real one, which takes longer.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from speckit_memory.memory.store.file.connection import Database

INDEX = "*-shm"
"""The index of the log in memory, which whoever opens the store first makes anew."""


class Death:
    """Whether the point was reached."""

    def __init__(self) -> None:
        self.reached = False


@contextmanager
def dying(database: Database, root: Path, aside: Path, after: int) -> Iterator[Death]:
    """Keeps the files below `root` as they are before statement number `after` of the block, in the folder `aside`."""
    death, left = Death(), after

    def stated(*_: object) -> bool:
        nonlocal left
        left -= 1
        if left == 0:
            shutil.copytree(root, aside, ignore=shutil.ignore_patterns(INDEX), symlinks=True)
            death.reached = True
        return True

    def followed(connection: apsw.Connection) -> None:
        if connection.filename.startswith(str(root)):
            connection.exec_trace = stated

    watched = [connection for _, connection in database._connections]
    with _hooked(followed):
        for connection in watched:
            connection.exec_trace = stated
        try:
            yield death
        finally:
            left = 0
            for connection in watched:
                connection.exec_trace = None


@contextmanager
def _hooked(hook: Callable[[apsw.Connection], None]) -> Iterator[None]:
    apsw.connection_hooks.append(hook)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(hook)


def set_back(root: Path, aside: Path) -> None:
    """Puts what was kept in the place of what there is."""
    shutil.rmtree(root)
    aside.rename(root)


def killed(root: Path, work: Callable[[], object], after: int) -> bool:
    """Has a process of its own do some work, and kills it before its statement number `after` on files below `root`.

    False when it ended before. No store may be open here meanwhile.
    """
    child = os.fork()
    if not child:
        left = after

        def stated(*_: object) -> bool:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

        def followed(connection: apsw.Connection) -> None:
            if connection.filename.startswith(str(root)):
                connection.exec_trace = stated

        status = 1
        try:
            apsw.connection_hooks.append(followed)
            work()
            status = 0
        finally:
            os._exit(status)  # nothing of the process that it was made of ends here
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
