"""Translation of the SQLite driver's errors into the product's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from speckit_memory.errors import SpeckitError, StoreError

DriverError = apsw.Error
BusyError, ReadOnlyError, FullError = apsw.BusyError, apsw.ReadOnlyError, apsw.FullError
PermissionsError = apsw.PermissionsError
ConstraintError, MismatchError = apsw.ConstraintError, apsw.MismatchError
InterruptError, SQLError, ReadingError = apsw.InterruptError, apsw.SQLError, apsw.IOError
"""The driver's errors, under the names that stores in other engines raise them by."""
NO_TRANSACTION, READING, WRITING = apsw.SQLITE_TXN_NONE, apsw.SQLITE_TXN_READ, apsw.SQLITE_TXN_WRITE
"""The states of a connection's transaction."""
_MISSING = re.compile(
    r"no such (table|column)|table \S+ has (no column|\d+ columns)|vtable constructor failed|malformed"
)


_WRITING = {
    *(apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE),
    *(apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP, apsw.SQLITE_IOERR_SHMOPEN),
}
"""Extended result codes of failed writes."""


class LostConnectionError(StoreError):
    """E021: the connection to the server of a store was lost inside a transaction."""

    def __init__(self, *, writing: bool, unknown: bool = False) -> None:
        """Nothing was written, or with `unknown` it is not known whether the transaction was committed."""
        if unknown:
            super().__init__(
                "E021",
                "the connection to PostgreSQL was lost while a transaction was committed, and the server did not say "
                "whether it was",
                actions=("look whether the change is there before you ask for it again",),
            )
        else:
            what = "before the transaction was committed: nothing of it was written" if writing else "while reading"
            super().__init__(
                "E021", f"the connection to PostgreSQL was lost {what}", actions=("try again",), retryable=True
            )


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turns every driver error raised inside into a `SpeckitError` that names the file."""
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        raise failure(error, path) from error


def told_by_driver(error: Exception, path: Path) -> SpeckitError | None:
    """The product's error for an error of the driver; None for any other error."""
    return failure(error, path) if isinstance(error, apsw.Error | UnicodeDecodeError) else None


def failure(error: apsw.Error | UnicodeDecodeError, path: Path) -> SpeckitError:
    """The product's error: busy E022, damaged E024, cannot be opened or written E020, not saved E081, else E021.

    The driver's text on disk errors is left out: during a copy it names another file. A missing table or column counts
    as damage, since the product's statements only use those that every store has.
    """
    match error:
        case UnicodeDecodeError():
            return SpeckitError("E024", f"{path} is damaged: it holds bytes that are not UTF-8 text")
        case apsw.BusyError() | apsw.LockedError():
            return SpeckitError("E022", f"{path} stayed locked by another writer")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.SchemaChangeError() | apsw.FormatError():
            return SpeckitError("E024", f"{path} is damaged: {error}")
        case apsw.SQLError() if _MISSING.search(str(error)):
            return SpeckitError("E024", f"{path} is damaged: {error}")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return SpeckitError("E020", f"{path} could not be opened: {error}")
        case apsw.ReadOnlyError():
            return SpeckitError("E020", f"{path} is read-only: {error}")
        case apsw.FullError():
            full = f"there is no space left to write {path}"
            return SpeckitError("E081", full, actions=("free disk space",), retryable=False)
        case apsw.IOError() if getattr(error, "extendedresult", 0) in _WRITING:
            ways = (
                "check that the disk has room and accepts writes, and check the limit on file sizes",
                "try again",
            )
            return SpeckitError("E081", f"the disk did not accept the data written to {path}", actions=ways)
        case apsw.IOError():
            return SpeckitError("E021", f"{path} could not be read from the disk")
        case apsw.ConstraintError():
            message = f"{path} cannot store this value: {error}"
            return SpeckitError("E081", message, actions=("correct the value",), retryable=False)
    return SpeckitError("E021", f"{path}: {error}")
