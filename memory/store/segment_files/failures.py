"""Keeps in the store why the last segment could not be written, until one is written, for reports."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.segment_files.finding import Finding
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

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


def last(connection: apsw.Connection, store: Path) -> Finding | None:
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


def clear(txn: Transaction, store: Path) -> None:
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
