"""What belongs to the whole process and a component may have left changed: what is cheap to put back is put back."""

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
    """How the process was before the steps of a run.

    docs/datamodel.md says what is not put back. Context variables, numpy's handling of errors among them, need not be:
    each step has a context of its own.
    """

    stdout: Any
    stderr: Any
    recursion_limit: int
    collects: bool
    folder: str

    @classmethod
    def before_the_runs(cls) -> ProcessState:
        """How it was before the first of the runs that are under way, of which this is one until `after_the_run`.

        What a step of another run has changed for the moment would be put back for good if it were taken for that.
        """
        global _before, _under_way  # noqa: PLW0603 - it belongs to the process, as what it describes
        with _lock:
            if _before is None or not _under_way:
                _before = cls.now()
            _under_way += 1
            return _before

    @classmethod
    def now(cls) -> ProcessState:
        """How it is now."""
        return cls(_stream("stdout"), _stream("stderr"), sys.getrecursionlimit(), gc.isenabled(), _folder())

    def after_a_step(self) -> None:
        """Puts back what the next step, or the answer, would feel."""
        # by identity: what stands there may be an object of a component, which would be asked whether it is equal
        if _stream("stdout") is not self.stdout or _stream("stderr") is not self.stderr:
            sys.stdout, sys.stderr = self.stdout, self.stderr
        if sys.getrecursionlimit() < self.recursion_limit:
            sys.setrecursionlimit(self.recursion_limit)
        if self.collects and not gc.isenabled():
            gc.enable()

    def after_the_run(self) -> None:
        """Puts back what only relative paths feel."""
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
