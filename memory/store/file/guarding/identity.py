"""Whether the file at a store's path is still the one that was opened, in the state that was seen or a later one.

People restore backups, delete `.speckit` and index again while servers run. SQLite would go on with the file that it
opened, which nobody can find any more, and what is saved there is lost.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

import apsw

from speckit_memory.errors import StoreError
from speckit_memory.memory.store.file.guarding.queries import rows, value

KEPT = 10_000
"""So many entries the log of changes keeps, the latest ones."""
_CHECKPOINT_SECONDS = 0.02
_CHECKPOINT_LOOKS = 25
"""How often, and after how many seconds each, a checkpoint of another process is looked for that has not ended yet."""
_WAL_HEADER = 32
_TIMES_BEGUN = slice(12, 16)
"""Of a log's header: the "checkpoint sequence number", 0 in a log that was never begun anew (SQLite, WAL format)."""

_LINEAGE = "SELECT seq, token, (SELECT token FROM changes WHERE seq = ?1) FROM changes ORDER BY seq DESC LIMIT 1"
"""The last change, and the token of the change that was seen last."""


class ReplacedError(StoreError):
    """E026: what is at the store's path is not what was opened.

    `committed` when a transaction had ended just before, so that it may or may not be in the file that is there now;
    `in_place` when the file is the same one and was written to without SQLite, which may have damaged it.
    """

    def __init__(self, path: Path, what: str, *, in_place: bool = False) -> None:
        super().__init__("E026", f"{path} {what} while it was open")
        self.what = what
        self.in_place = in_place
        self.committed = False


@dataclass(frozen=True, slots=True)
class _Look:
    """What the file system says of a file. A file keeps its device and inode for life, whatever it is called."""

    file: tuple[int, int]
    written: tuple[int, int]
    """When it was last changed (ns), and its size in bytes."""


@dataclass(frozen=True, slots=True)
class _Log:
    """How far the write-ahead log has come: its frames, how many of them are in the main file, and its header, which
    changes whenever the log begins anew."""

    frames: int
    checkpointed: int
    header: bytes


class Identity:
    """What one opened store is recognised by. Safe to be used by several threads."""

    def __init__(self, path: Path) -> None:
        """Takes the file that is at the path now: make it, if need be, before it is opened."""
        self._path = path
        self._name = str(path)
        self._wal = Path(os.path.realpath(path) + "-wal")
        self._guard = Lock()
        self._first = self._look()
        self._written = self._first.written
        self._wal_file: tuple[int, int] | None = None
        self._log: _Log | None = None
        self._seen: tuple[int, int | None] | None = None
        self._versions: WeakKeyDictionary[apsw.Connection, int | None] = WeakKeyDictionary()
        """For connections that found the log empty: their `_version` when the file was as `_written` says."""

    def require_same_file(self) -> None:
        """Raises `ReplacedError` when another file is at the path, or none."""
        if self._look().file != self._first.file:
            raise ReplacedError(self._path, "was replaced by another file")

    def require(self, connection: apsw.Connection) -> int:
        """The number of the last change. Raises `ReplacedError` unless the store is the one that was opened, in the
        state that was seen last or in one that came of it."""
        self.require_unchanged(connection)
        return self.require_lineage(connection)

    def require_lineage(self, connection: apsw.Connection) -> int:
        """As `require`, for what the connection's transaction sees, without a look at the file.

        Whoever restores a backup by means of SQLite leaves the file what it is. Every change has a token of its own,
        so that the history that was seen before is there, or is not.
        """
        seen = self._seen  # before the first SELECT: what was seen then, every transaction that begins now sees too
        try:
            found = rows(connection, _LINEAGE, (seen[0] if seen else None,))
        except apsw.SQLError:  # a table or column is missing: an older or a foreign schema
            if seen is None:
                raise
            raise ReplacedError(self._path, "got another schema") from None
        last, token, known = found[0] if found else (0, None, None)
        if seen is not None and known != seen[1] and last - seen[0] < KEPT:  # an older entry may have been forgotten
            raise ReplacedError(self._path, "was set to another state")
        if seen is None or seen[0] < last:
            self._seen = last, token
        return int(last)

    def last_change(self, connection: apsw.Connection) -> tuple[int, int | None] | None:
        """The number and the token of the last change, for `require_committed`; None when there is none."""
        found = rows(connection, "SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1")
        return found[0] if found else None

    def require_committed(self, connection: apsw.Connection, written: tuple[int, int | None] | None) -> None:
        """After a COMMIT of this last change: raises `ReplacedError` unless it went into the file at the path, or into
        that file's log."""
        if written is not None:
            self._seen = written
        try:
            self.require_same_file()
            if self._wal_file != self._file_of_log():
                raise ReplacedError(self._path, "lost its write-ahead log")
            self._note_first_frames(connection)
        except ReplacedError as error:
            error.committed = True
            raise

    def note_log(self, connection: apsw.Connection) -> None:
        """Takes the write-ahead log of a connection that has begun a transaction, the first time.

        A file with a rollback journal has none: every commit writes to the file itself, so that only its history tells
        whether it is another one.
        """
        with self._guard:
            if self._log is None and connection.pragma("journal_mode") == "wal":
                with suppress(apsw.ReadOnlyError):  # left by who was killed: SQLite reads it, and tells nothing of it
                    self._wal_file, self._log = self._file_of_log(), self._read_log(connection, None)
                    if not self._log.frames:
                        self._versions[connection] = _version(connection)
                self._written = self._look().written

    def _note_first_frames(self, connection: apsw.Connection) -> None:
        """Takes the log that this process has begun, unless it was copied already, which the next look is to find."""
        with self._guard:
            before = self._log
            if before is not None and not before.frames:
                now = self._read_log(connection, before)
                if not now.checkpointed and self._look().written == self._written:
                    self._log = now

    def left_behind(self) -> tuple[Path, ...]:
        """The log of this store and its index, where they still lie beside another file that took the path.

        They tell of pages of a file that is gone, and would be taken for changes of the new one.
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
            raise ReplacedError(self._path, f"was taken away ({error.strerror})") from error
        return _Look((found.st_dev, found.st_ino), (found.st_mtime_ns, found.st_size))

    def _file_of_log(self) -> tuple[int, int] | None:
        try:
            found = self._wal.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def require_unchanged(self, connection: apsw.Connection) -> None:
        """Raises `ReplacedError` when another file is at the path, or this one was written to by another program.

        The file changes when SQLite copies its log there, which the log tells; by nothing else. No transaction of the
        connection may be open.
        """
        with self._guard:
            before = self._log
            # the log before the file: what is copied in between then shows in the file alone, and is looked into
            now = None if before is None else self._read_log(connection, before)
            version = None if now is None or now.frames else _version(connection)
            found = self._look()
            if found.file != self._first.file:
                raise ReplacedError(self._path, "was replaced by another file")
            if before is None or now is None:
                return
            if found.written != self._written:
                self._await_checkpoint(connection, before)
                now, version = self._read_log(connection, before), _version(connection)
                self._written = self._look().written
                self._versions.clear()
            if not now.frames:
                self._versions[connection] = version
            self._log = now

    def _await_checkpoint(self, connection: apsw.Connection, before: _Log) -> None:
        """Returns once the log has come further than before. A checkpoint writes to the file first and says so last."""
        for _ in range(_CHECKPOINT_LOOKS):
            if self._has_checkpointed(connection, before):
                return
            time.sleep(_CHECKPOINT_SECONDS)
        raise ReplacedError(self._path, "was overwritten", in_place=True)

    def _has_checkpointed(self, connection: apsw.Connection, before: _Log) -> bool:
        """Whether the log tells that it was copied to the file since. One that was empty before may have been filled,
        copied and begun anew, or emptied; then its header counts how often, or the history went on, or SQLite has told
        this connection of it."""
        if self._read_log(connection, before).checkpointed != before.checkpointed:
            return True
        header = self._header()
        if before.frames:
            return header != before.header
        if (not before.header and any(header[_TIMES_BEGUN])) or self._went_on(connection):
            return True
        before_that = self._versions.get(connection)
        return not header and before_that is not None and _version(connection) not in (None, before_that)

    def _went_on(self, connection: apsw.Connection) -> bool:
        """Whether somebody has changed the store by means of SQLite since it was seen last."""
        seen = self._seen
        if seen is None:
            return False
        try:
            ((last, _, known),) = rows(connection, _LINEAGE, (seen[0],)) or [(0, None, None)]
        except apsw.Error:  # of a file that was written to without SQLite
            return False
        return bool(last > seen[0] and (known == seen[1] or last - seen[0] >= KEPT))

    def _read_log(self, connection: apsw.Connection, before: _Log | None) -> _Log:
        """The log as it is now. Its header comes with the first frame, and is read again only where it may differ."""
        _, frames, checkpointed = rows(connection, "PRAGMA wal_checkpoint(NOOP)")[0]
        if before is not None and before.frames and frames >= before.frames and checkpointed >= before.checkpointed:
            return _Log(frames, checkpointed, before.header)
        return _Log(frames, checkpointed, self._header())

    def _header(self) -> bytes:
        # SQLite holds no locks on this file, which closing it here would give up
        try:
            with self._wal.open("rb") as log:
                return log.read(_WAL_HEADER)
        except OSError:
            return b""


def _version(connection: apsw.Connection) -> int | None:
    """A number that changes when others commit to the store, or when its log is begun anew or emptied. None where the
    file cannot be read."""
    try:
        found: int = value(connection, "PRAGMA data_version")
    except apsw.Error:  # of a file that was written to without SQLite
        return None
    return found
