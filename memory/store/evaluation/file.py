"""The file of the evaluation database: opened on first use, and reopened when another file took its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from speckit_memory.config.workspace.store_address import address_at, store_label
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.store.evaluation import losses
from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.file.connection import Connection, DriverError
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.store_file import (
    keep_out_of_git,
    make_file,
    require_file,
    store_is_there,
)
from speckit_memory.memory.store.file.opening import connect, harden, leave_wal, prepare, require_sqlite, start_of

_PRAGMAS = (
    "PRAGMA foreign_keys = ON;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA cache_size = -2048;"
    "PRAGMA secure_delete = ON;"  # deleted queries must not remain readable in the file
    "PRAGMA journal_size_limit = 4194304;"
    "PRAGMA mmap_size = 0;"  # docs/decisions/0003-no-mmap.md
)
_HINT = (
    "It holds records of answers, stored evaluations, labels and the evidence for flags, but no memories; searches "
    "work without it."
)


class EvaluationFile:
    """One connection to the file, used by one thread at a time.

    The file may be deleted or replaced at any time: each transaction uses the file present when it begins.
    """

    def __init__(self, path: Path, *, create: bool, busy_timeout_ms: int) -> None:
        self.path = path
        self._create = create
        self._busy_timeout_ms = busy_timeout_ms
        # Held for a whole transaction, so that a process has one at a time; reentrant, since `_transaction` calls
        # `open`.
        self._guard = RLock()
        self._connection: Connection | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read transaction, in which all SELECTs see one snapshot."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed when the block ends, rolled back when it raises.

        Raises E022 when the lock is not free within the busy timeout, and the errors of `open`.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def open(self) -> Connection:
        """The connection to the file that is at the path now.

        Raises E010 (missing, and not allowed to be created), E011 or E020 (not readable or writable), E014 (a folder),
        E022 (busy), E024 (of another program, or damaged) and E025 (newer than this version).
        """
        with self._guard, translate_errors_of(self.path):
            # device and inode: a file that was deleted or replaced since is opened again
            if self._connection is not None and self._file == self._found():
                return self._connection
            self.close()
            self._require()
            self._file = self._found()
            rollback = leave_wal(self.path, self._busy_timeout_ms)
            connection = connect(os.path.realpath(self.path))
            try:
                connection.set_busy_timeout(self._busy_timeout_ms)
                connection.execute(
                    _PRAGMAS
                ).fetchall()  # some return a row, and the next statement only runs when it has been read
                if rollback:
                    connection.pragma("synchronous", 2)  # FULL: NORMAL is safe in WAL mode only
                harden(connection)
                if not connection.pragma("page_count"):
                    connection.pragma("auto_vacuum", 2)  # "incremental", which can only be set for a new file
                prepare(connection, self.path, EVALUATION, rollback=rollback)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            return connection

    def is_there(self) -> bool:
        """Whether it can be opened: False if it is missing and may not be created. Raises other errors of `open`."""
        try:
            self.open()
        except SpeckitError as error:
            if error.code != "E010":
                raise
            return False
        return True

    def empty_log(self) -> bool:
        """Copies the log into the file and truncates it, since it may hold deleted data; False while other connections
        use it."""
        with self._guard, translate_errors_of(self.path):
            busy, *_ = self.open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            return not busy

    def used_bytes(self, connection: Connection) -> int:
        """Size in bytes of all records, without free pages."""
        return losses.used_bytes(connection)

    def close(self) -> None:
        """Closes the connection; the next transaction opens another one."""
        with self._guard:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(DriverError):  # the file may be gone or damaged: nothing can be saved then
                    connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._guard, translate_errors_of(self.path):
            connection = self.open()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _require(self) -> None:
        require_sqlite()
        if not self._create and not store_is_there(self.path):
            raise missing(self.path)
        require_file(self.path, self._create or self._is_empty(), start_of)
        if self._create:
            keep_out_of_git(self.path.parent)
            make_file(self.path)

    def _is_empty(self) -> bool:
        """Whether an empty file exists, as a full disk may leave it; it can be used as a new one."""
        try:
            return self.path.stat().st_size == 0
        except OSError:
            return False

    def _found(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def missing(path: Path) -> SpeckitError:
    """E010: there is no evaluation database."""
    return SpeckitError("E010", f"there is no evaluation database at {store_label(path)}", actions=("run a search",))


@contextmanager
def translate_errors_of(path: Path) -> Iterator[None]:
    """Adds to every failure that no memory is lost, and what to do about an unusable file."""
    try:
        with translate_errors(path):
            yield
    except SpeckitError as error:
        problem = error.problems[0]
        if problem.hint == _HINT:
            raise
        ways = {
            "E024": (
                f"copy {path} with its -wal and -shm: its records exist nowhere else",
                "then delete them: an empty one will be made",
            ),
            "E025": (
                "upgrade speckit-memory",
                f"or move {path} with its -wal and -shm away: an empty one will be made",
            ),
        }
        actions = problem.actions if address_at(path) else ways.get(problem.code, problem.actions)
        raise SpeckitError.of(
            [Problem(problem.code, problem.message, _HINT, actions, retryable=problem.retryable)]
        ) from error
