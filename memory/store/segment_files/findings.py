"""Problems that prevent the use or writing of a segment, with hints; the store keeps why the last writer failed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

Kind = Literal[
    "missing", "stale", "behind", "torn", "version", "foreign", "unread", "blocked", "leftover", "failed", "written"
]

_BY_ITSELF = (
    "Answers are the same without it, only slower; a running server or the next `speckit-memory index PATH` writes "
    "it automatically, `speckit-memory doctor --fix` at once."
)
_HINTS: dict[Kind, str] = {
    "missing": _BY_ITSELF,
    "stale": _BY_ITSELF,
    "behind": "It is used; later changes are read from the store, which takes longer the more there are. A running "
    "server or the next `speckit-memory index PATH` rewrites it, `speckit-memory doctor --fix` at once.",
    "torn": f"It is not used. {_BY_ITSELF} If this happens again, check the disk.",
    "version": _BY_ITSELF,
    "foreign": f"It is not used. {_BY_ITSELF}",
    "unread": "A running server checks it automatically, `speckit-memory doctor --fix` at once. Answers are the same.",
    "blocked": "Move it away; the folder is then created. Answers are the same without it, only slower.",
    "leftover": "The next writer removes them, `speckit-memory doctor --fix` at once.",
    "written": "Nothing needs to be done. Until it is complete, answers are the same, only slower.",
    "failed": "Answers are the same without it, only slower. Fix the cause, then run `speckit-memory doctor --fix`.",
}


class Finding(NamedTuple):
    """One problem. `kind` is for programs; `detail` describes the problem and its place."""

    kind: Kind
    detail: str

    @property
    def hint(self) -> str:
        """What the problem means and what to do next."""
        return _HINTS[self.kind]

    @property
    def code(self) -> str:
        """E029 for problems that prevent writing a segment, else E028."""
        return "E029" if self.kind in ("failed", "blocked") else "E028"

    def __str__(self) -> str:
        return f"{self.code} {self.kind}: {self.detail}"


KEY = "segment_failure"
PATIENCE_MS = 250
"""How long recording a failure waits for other writers; the store works without the record."""

_untold: dict[Path, str] = {}
"""Failures that could not be stored, for example on a full disk, by store; known to this process only."""


class GivenUpError(Exception):
    """The writing of a segment was abandoned: the process ends, or the store is closed."""


@contextmanager
def raise_segment_failures(database: Database, folder: Path) -> Iterator[None]:
    """Record any failure inside the block and raise it as E029, except GivenUpError."""
    try:
        yield
    except GivenUpError:
        raise
    except Exception as error:  # memory may be short, and a damaged store may contain anything
        failed = error if isinstance(error, SpeckitError) and error.code == "E029" else _failed(folder, error)
        _note(database, str(failed.problems[0].message))
        raise failed from error


def last_failure(connection: Connection, store: Path) -> Finding | None:
    """The failure since which no segment has been written; None without one."""
    untold = _untold.get(store)
    if untold:
        return Finding("failed", untold)
    try:
        noted = json.loads(get_meta(connection, KEY) or "null")
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(noted["at"])))
        return Finding("failed", f"{noted['what']} ({when})")
    except (ValueError, TypeError, KeyError, OverflowError, OSError):
        return None


def clear_failure(txn: Transaction, store: Path) -> None:
    """Delete the recorded failure."""
    txn.connection.execute("DELETE FROM meta WHERE key = ?", (KEY,))
    _untold.pop(store, None)


def _failed(folder: Path, error: Exception) -> SpeckitError:
    if isinstance(error, OSError):
        why = error.strerror or str(error)
    else:
        why = str(error) if isinstance(error, SpeckitError) else f"{type(error).__name__}: {error}"
    return SpeckitError("E029", f"no segment could be written in {folder}: {why}")


def _note(database: Database, what: str) -> None:
    _untold[database.path] = what
    # Kept in memory first: recording may fail for the same reason, such as a full disk.
    with suppress(SpeckitError, RuntimeError), database.write(PATIENCE_MS) as txn:
        set_meta(txn, KEY, json.dumps({"at": time.time(), "what": what}))
        _untold.pop(database.path, None)
