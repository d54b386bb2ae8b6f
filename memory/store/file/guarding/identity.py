"""Checks that the file at a store's path is still the one that was opened, in the state last seen or a later one.

People restore backups, or delete `.speckit` and index again, while servers run. SQLite would go on using the file that
it opened, which is no longer at any path, and everything saved to it would be lost.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import apsw

from speckit_memory.errors import SpeckitError, StoreError
from speckit_memory.memory.store.file.guarding.queries import rows, value

KEPT = 10_000
"""Number of latest entries that the log of changes keeps."""
_CHECKPOINT_SECONDS = 0.02
_CHECKPOINT_LOOKS = 25
"""Interval in seconds and number of polls while waiting for another process's WAL checkpoint to finish."""
_WAL_HEADER = 32
_TIMES_BEGUN = slice(12, 16)
"""The "checkpoint sequence number" in a WAL header, 0 in a log that was never restarted (SQLite, WAL format)."""

_LINEAGE = "SELECT seq, token, (SELECT token FROM changes WHERE seq = ?1) FROM changes ORDER BY seq DESC LIMIT 1"
"""Number and token of the last change, and the present token of the change with the number ?1, which was seen last."""


_COMMITS = "PRAGMA data_version"


class ReplacedError(StoreError):
    """E026: the file at the store's path is not the one that was opened.

    `committed` is true when a transaction had just ended, which may or may not be in the present file; `in_place` is
    true when the same file was written to without SQLite, which may have damaged it.
    """

    def __init__(self, path: Path, what: str, *, in_place: bool = False) -> None:
        super().__init__("E026", f"{path} {what} while it was open")
        self.what = what
        self.in_place = in_place
        self.committed = False


class StoreState(NamedTuple):
    """A state of a store."""

    commits: int
    """Changes with every commit by any thread or process (feature T25); never returns to a former value."""
    last: int
    """The number of the last change; 0 in a store without changes."""


class ReplicaState(NamedTuple):
    """What is known of a replica of the store."""

    address: str
    behind_seconds: float | None = None
    """The most that it can be behind the store; None if that is not known."""
    last_change: int = 0
    """The number of the last change that it has."""
    problem: str = ""
    """Why it is not read from."""

    @property
    def lag(self) -> str:
        """How far it is behind, in words."""
        seconds = self.behind_seconds
        return "behind by an unknown time" if seconds is None else f"up to {seconds:,.1f} s behind"

    def as_json(self) -> dict[str, Any]:
        """The note of an answer that was read from it."""
        return {"address": self.address, "behind_seconds": self.behind_seconds, "last_change": self.last_change}


class ReadSource(NamedTuple):
    """Where a read comes from: a replica, or the store itself; and what its reader should know about that."""

    replica: ReplicaState | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Look:
    """Identity and state of a file: its device and inode, which never change, and its mtime and size."""

    file: tuple[int, int]
    written: tuple[int, int]
    """Its mtime (ns), and its size in bytes."""


@dataclass(frozen=True, slots=True)
class _Log:
    """State of the write-ahead log: its number of frames, how many of them were copied to the main file, and its
    header, which changes whenever the log restarts."""

    frames: int
    checkpointed: int
    header: bytes


class Identity:
    """Recognises the store that was opened. Safe for several threads."""

    def __init__(self, path: Path) -> None:
        """Records the file at the path, which must exist already."""
        self._path = path
        self._name = str(path)
        self._wal = Path(os.path.realpath(path) + "-wal")
        self._guard = Lock()
        self._first = self._look()
        self._written = self._first.written
        self._wal_file: tuple[int, int] | None = None
        self._log: _Log | None = None
        self._seen: tuple[int, int | None] | None = None
        self._watch: apsw.Connection | None = None
        """A connection that never writes: `PRAGMA data_version` counts only the commits of other connections."""
        self._passed: tuple[_Look, StoreState] | None = None
        """The last state that was examined; while the file and the number of commits are the same, nothing was written
        to either the file or its log."""
        self._version: int | None = None
        """`_read_version` when the log was last found empty, as of the file state `_written`."""

    def require_same_file(self) -> None:
        """Raises `ReplacedError` when another file, or none, is at the path."""
        if self._look().file != self._first.file:
            raise ReplacedError(self._path, "was replaced by another file")

    def require(self, connection: apsw.Connection) -> StoreState:
        """The present state. Raises `ReplacedError` unless the store is the one that was opened, in the state last seen
        or a later one. The connection must have no open transaction."""
        with self._guard:
            # Commits first: one that comes while the rest is examined shows at the next call.
            commits, look = self._read_version(), self._look()
            if self._passed is not None and self._passed[0] == look and self._passed[1].commits == commits:
                return self._passed[1]
            self._require_unchanged()
            if commits is None:
                commits = int(value(self._watching(), _COMMITS))  # raises the driver's error
        state = StoreState(commits, self.require_lineage(connection))
        self._passed = look, state
        return state

    def require_unchanged(self) -> None:
        """Raises `ReplacedError` when another file is at the path, or another program wrote to this one."""
        with self._guard:
            self._require_unchanged()

    def require_lineage(self, connection: apsw.Connection) -> int:
        """As `require`, within the connection's transaction and without a look at the file.

        Restoring a backup through SQLite keeps the file's inode. So each change has a random token: the history is the
        same one exactly if the change last seen still has its token.
        """
        seen = self._seen  # read before the first SELECT: every snapshot taken from now on includes this change
        try:
            found = rows(connection, _LINEAGE, (seen[0] if seen else None,))
        except apsw.SQLError:  # a table or column is missing: an older or foreign schema
            if seen is None:
                raise
            raise ReplacedError(self._path, "got another schema") from None
        last, token, known = found[0] if found else (0, None, None)
        # The change last seen is gone or has another token: the file holds another history.
        if seen is not None and known != seen[1] and last - seen[0] < KEPT:  # an older entry may have been forgotten
            raise ReplacedError(self._path, "was set to another state")
        if seen is None or seen[0] < last:
            self._seen = last, token
        return int(last)

    def last_change(self, connection: apsw.Connection) -> tuple[int, int | None] | None:
        """Number and token of the last change, for `require_committed`; None when there is none."""
        found = rows(connection, "SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1")
        return found[0] if found else None

    def require_committed(self, written: tuple[int, int | None] | None) -> None:
        """Checks a COMMIT whose last change was `written`: raises `ReplacedError` unless it reached the file at the
        path or that file's log."""
        if written is not None:
            self._seen = written
        try:
            self.require_same_file()
            # The commit went to the log that SQLite holds open; no process reads it if another one is at its path.
            if self._wal_file != self._file_of_log():
                raise ReplacedError(self._path, "lost its write-ahead log")
            self._note_first_frames()
        except ReplacedError as error:
            error.committed = True
            raise

    def begin(self, connection: apsw.Connection, watch: apsw.Connection) -> None:
        """Records the write-ahead log, when a connection has begun its first transaction.

        A file with a rollback journal has no log: every commit writes to the file itself, so that only the history of
        changes can show a replacement.

        Args:
            connection: A connection that has read the file.
            watch: A connection for the identity alone; `end` closes it.
        """
        with self._guard:
            self._watch = watch
            if connection.pragma("journal_mode") == "wal":
                with suppress(apsw.ReadOnlyError):  # log of a killed process: SQLite reads it but reports no state
                    self._wal_file, self._log = self._file_of_log(), self._read_log(None)
                    if not self._log.frames:
                        self._version = self._read_version()
                self._written = self._look().written

    def end(self) -> None:
        """Closes the watching connection."""
        with self._guard:
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    def _watching(self) -> apsw.Connection:
        if self._watch is None:
            raise SpeckitError("E027", f"{self._path} has been closed")
        return self._watch

    def _note_first_frames(self) -> None:
        """Records the log that this process has begun, unless it was already copied to the file, which the next check
        must see."""
        with self._guard:
            before = self._log
            if before is not None and not before.frames:
                now = self._read_log(before)
                if not now.checkpointed and self._look().written == self._written:
                    self._log = now

    def left_behind(self) -> tuple[Path, ...]:
        """This store's log and its index, if they are still next to another file that took the path.

        They hold pages of a file that is gone, and SQLite would take them for changes of the new one.
        """
        try:
            same = self._look().file == self._first.file
        except ReplacedError:
            same = False
        if same or self._wal_file is None or self._file_of_log() != self._wal_file:
            return ()
        return self._wal, self._wal.with_name(self._wal.name.removesuffix("wal") + "shm")

    def _look(self) -> _Look:
        try:
            found = os.stat(self._name)  # noqa: PTH116 -- a path object takes twice the time
        except OSError as error:
            raise ReplacedError(self._path, f"was removed ({error.strerror})") from error
        return _Look((found.st_dev, found.st_ino), (found.st_mtime_ns, found.st_size))

    def _file_of_log(self) -> tuple[int, int] | None:
        try:
            found = self._wal.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _require_unchanged(self) -> None:
        """As `require_unchanged`: SQLite changes the file only by copying the log into it, which the log shows."""
        before = self._log
        # Log first, file second: a checkpoint in between then shows in the file alone, and is examined below.
        now = None if before is None else self._read_log(before)
        version = None if now is None or now.frames else self._read_version()
        found = self._look()
        if found.file != self._first.file:
            raise ReplacedError(self._path, "was replaced by another file")
        if before is None or now is None:
            return
        if found.written != self._written:
            self._await_checkpoint(before)
            now, version = self._read_log(before), self._read_version()
            self._written = self._look().written
        if not now.frames:
            self._version = version
        self._log = now

    def _await_checkpoint(self, before: _Log) -> None:
        """Waits until the log shows a checkpoint: SQLite writes the file first and updates the log's state last."""
        for _ in range(_CHECKPOINT_LOOKS):
            if self._has_checkpointed(before):
                return
            # Another process may be between writing the file and updating the log's state: wait before refusing.
            time.sleep(_CHECKPOINT_SECONDS)
        raise ReplacedError(self._path, "was overwritten", in_place=True)

    def _has_checkpointed(self, before: _Log) -> bool:
        """Whether the log shows that it was copied to the file since `before`. A log that was empty before may have
        been filled, copied, and restarted or truncated; then its header's sequence number, the history of changes or
        the number of commits shows it."""
        if self._read_log(before).checkpointed != before.checkpointed:
            return True
        header = self._header()
        if before.frames:
            return header != before.header
        if (not before.header and any(header[_TIMES_BEGUN])) or self._went_on():
            return True
        return not header and self._version is not None and self._read_version() not in (None, self._version)

    def _went_on(self) -> bool:
        """Whether the store has been changed through SQLite since it was last seen."""
        seen = self._seen
        if seen is None:
            return False
        try:
            ((last, _, known),) = rows(self._watching(), _LINEAGE, (seen[0],)) or [(0, None, None)]
        except apsw.Error:  # the file was written to without SQLite
            return False
        return bool(last > seen[0] and (known == seen[1] or last - seen[0] >= KEPT))

    def _read_log(self, before: _Log | None) -> _Log:
        """The present state of the log. Its header exists from the first frame and is reread only if it may differ."""
        _, frames, checkpointed = rows(self._watching(), "PRAGMA wal_checkpoint(NOOP)")[0]
        if before is not None and before.frames and frames >= before.frames and checkpointed >= before.checkpointed:
            return _Log(frames, checkpointed, before.header)
        return _Log(frames, checkpointed, self._header())

    def _read_version(self) -> int | None:
        """A number that changes when any connection commits, or when the log is restarted or truncated. None where the
        file cannot be read."""
        try:
            found: int = value(self._watching(), _COMMITS)
        except apsw.Error:  # the file was written to without SQLite
            return None
        return found

    def _header(self) -> bytes:
        # SQLite holds its locks on the file and the -shm index, not on this one, so that closing it releases none
        try:
            # Read from the file, since no SQLite interface returns the header's sequence number and salts.
            with self._wal.open("rb") as log:
                return log.read(_WAL_HEADER)
        except OSError:
            return b""
