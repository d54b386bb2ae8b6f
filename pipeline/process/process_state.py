"""Process-wide state that a component may have changed: restores the parts that are cheap to restore."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any


@dataclass(frozen=True, slots=True)
class ProcessState:
    """The state of the process before the steps of a run.

    docs/datamodel.md lists the parts that are not restored. Context variables, including numpy's error handling, need
    no restoring: each step runs in its own context.
    """

    stdout: Any
    stderr: Any
    recursion_limit: int
    collects: bool
    folder: str

    @classmethod
    def before_the_runs(cls) -> ProcessState:
        """The state before the first of the concurrent runs; this run counts as one of them until `after_the_run`.

        The current state would not do: it may include a temporary change by a step of another run, which would become
        permanent.
        """
        global _before, _under_way  # noqa: PLW0603 - process-wide, like the state it describes
        with _lock:
            if _before is None or not _under_way:
                _before = cls.now()
            _under_way += 1
            return _before

    @classmethod
    def now(cls) -> ProcessState:
        """The current state."""
        return cls(_stream("stdout"), _stream("stderr"), sys.getrecursionlimit(), gc.isenabled(), _folder())

    def after_a_step(self) -> None:
        """Restores the parts that affect the next step or the answer."""
        # compared by identity: the current stream may be an object of a component, whose __eq__ must not run
        if _stream("stdout") is not self.stdout or _stream("stderr") is not self.stderr:
            sys.stdout, sys.stderr = self.stdout, self.stderr
        if sys.getrecursionlimit() < self.recursion_limit:
            sys.setrecursionlimit(self.recursion_limit)
        if self.collects and not gc.isenabled():
            gc.enable()

    def after_the_run(self) -> None:
        """Restores the working directory, which only affects relative paths."""
        global _under_way  # noqa: PLW0603 - likewise
        with _lock:
            _under_way -= 1
        if self.folder and _folder() != self.folder:
            with suppress(OSError):
                os.chdir(self.folder)


_lock = Lock()
_under_way = 0
_before: ProcessState | None = None


def _stream(name: str) -> Any:
    return getattr(sys, name, None)  # it may have been deleted


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a path object takes ten times as long, for every search
    except OSError:  # it has been deleted
        return ""
