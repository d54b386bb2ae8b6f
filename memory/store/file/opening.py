"""Checks and preparations before a file is used as a store."""

from __future__ import annotations

import importlib.util
import logging
import os
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.file_system import file_system_of
from speckit_memory.memory.store.file.schema import migrations
from speckit_memory.memory.store.file.schema.schema import APPLICATION_ID

LOGGER = logging.getLogger(__name__)
OLDEST_SQLITE = (3, 51, 3)
"""Older versions can damage a file in WAL mode when two processes write to it at once."""

_PAUSE = 0.05
_FILE_VERSIONS = slice(18, 20)
"""The write and read versions in a database header, both 2 for a file in WAL mode (SQLite, file format)."""
WITHOUT_SHARED_MEMORY = (
    "processes share no memory there, so that the store keeps a rollback journal instead of a write-ahead log. "
    "Searches and writes wait for one another, and are as safe as the locks of that file system; --db or SPECKIT_DB "
    "names a place on a local disk"
)
_warned: set[str] = set()
"""Mounts that this process has warned about."""
_SHADOWS = {
    "chunk_vectors": ("chunks", "info", "rowids", "vector_chunks00"),
    "memory_fts": ("config", "data", "docsize", "idx"),
    "surface_fts": ("config", "data", "docsize", "idx"),
}


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of database file: its application id, its migrations, and whether migrating leaves a copy of the old
    file. In PostgreSQL a schema of this name has its tables."""

    application_id: int
    steps: tuple[migrations.Migration, ...]
    copied: bool = True
    schema: str = "speckit"


STORE = FileKind(APPLICATION_ID, migrations.MIGRATIONS)


def require_sqlite(version: str = "") -> None:
    """Raises E020 when a version of SQLite, the loaded one by default, must not be used."""
    version = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise SpeckitError("E020", f"SQLite {version} is too old, {oldest} is needed", actions=("upgrade apsw",))


def start_of(path: Path, count: int = 16) -> bytes:
    """The first bytes of a file, read through SQLite's VFS: closing a descriptor opened directly would release the
    POSIX locks of this process's other connections to the file."""
    file = apsw.VFSFile("", os.path.realpath(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        return file.xRead(count, 0)
    finally:
        file.xClose()


def leave_wal(path: Path, busy_timeout_ms: int) -> bool:
    """Switches a file in WAL mode to a rollback journal where its file system shares no memory (`file_system`);
    returns whether a rollback journal must be used.

    Under an exclusive lock, SQLite reads the log without shared memory, so that the switch is safe. Warns once per
    process and mount. Raises BusyError while another process has the file open.
    """
    system = file_system_of(path)
    if system.shares_memory:
        return False
    if str(system) not in _warned:
        _warned.add(str(system))
        LOGGER.warning("%s lies on %s: %s", path, system, WITHOUT_SHARED_MEMORY)
    if start_of(path, 20)[_FILE_VERSIONS] == b"\2\2":
        with closing(apsw.Connection(os.path.realpath(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.set_busy_timeout(busy_timeout_ms)
            # Exclusive first: SQLite then keeps the WAL index in its heap instead of shared memory.
            connection.pragma("locking_mode", "exclusive")
            connection.pragma("journal_mode", "delete")
    return True


def prepare(
    connection: apsw.Connection,
    path: Path,
    kind: FileKind = STORE,
    *,
    only_read: bool = False,
    rollback: bool = False,
) -> None:
    """Initialises a new file as one of this kind and migrates an old one; an up-to-date file is not written to.

    Args:
        connection: An open connection to the file, without a transaction.
        path: The file, for messages and for the copy made before migrating.
        kind: The kind of database file that is expected.
        only_read: Whether the file is read-only; nothing is written to it then.
        rollback: Whether the file must keep a rollback journal; otherwise it is in WAL mode afterwards.

    Raises:
        SpeckitError: E024 when the file belongs to another program, E020 when it is out of date and read-only, and
            the errors of `migrations.migrate`.
    """
    # One read transaction: a store that another process creates meanwhile could show its tables without its id.
    connection.execute("BEGIN")
    identity = connection.pragma("application_id")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    connection.execute("COMMIT")
    # 0 without a table is a new file
    if identity != kind.application_id and (identity or tables):
        raise SpeckitError("E024", f"{path} is a SQLite file of another program")
    todo = migrations.pending(connection, kind.steps)
    if only_read and todo:
        hint = "An older version wrote it; it is brought up to date by the first command that may write to it."
        actions = ("make the file and its folder writable",)
        raise SpeckitError("E020", f"{path} is read-only and out of date", hint=hint, actions=actions)
    if not (only_read or rollback) and connection.pragma("journal_mode") != "wal":
        _write_ahead(connection)
    if todo:
        migrations.migrate(connection, path, kind.steps, copied=kind.copied)
    _require_shadows(connection, path)


def _write_ahead(connection: apsw.Connection) -> None:
    """Switches the file to WAL mode. If two connections try, SQLite refuses one at once, ignoring the busy timeout; so
    the wait is done here."""
    last = time.monotonic() + connection.pragma("busy_timeout") / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() >= last:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _require_shadows(connection: apsw.Connection, path: Path) -> None:
    """Raises E024 when a shadow table of a virtual table is missing: sqlite-vec would crash the process."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    wanted = {f"{table}_{part}" for table, parts in _SHADOWS.items() if table in names for part in parts}
    if missing := sorted(wanted - names):
        raise SpeckitError("E024", f"{path} is damaged: it lost the table {', '.join(missing)}")


def connect(name: str, *, only_read: bool = False, complete: bool = False) -> apsw.Connection:
    """Opens a connection to an existing file. An `only_read` connection writes no file.

    SQLite creates a log and its index even for reading. Where it cannot, and the file is `complete` without a log, the
    file is opened as immutable; a log appears when another process changes it. Raises E020 for a log without an index.
    """
    if not only_read:
        # without SQLITE_OPEN_CREATE: a file deleted meanwhile must not come back, empty and with the umask's mode
        return apsw.Connection(name, flags=apsw.SQLITE_OPEN_READWRITE)
    from urllib.parse import quote

    address = f"file:{quote(name)}?{'immutable=1' if complete else 'mode=ro'}"
    connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    if not complete:
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018
        except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
            connection.close()
            raise SpeckitError(
                "E020",
                f"{name} is read-only, and not all of it is in the file: a log lies next to it ({error})",
                hint="A process that was killed left it, or the store was copied while it was open.",
                actions=("open the store once where it can be written to, for example a copy of it with its -wal",),
            ) from error
    return connection


def harden(connection: apsw.Connection) -> None:
    """Makes a connection distrust the file: damaged or foreign schema entries are refused, not executed."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.execute("PRAGMA cell_size_check = ON")


def vector_extension() -> str:
    """Path of the loadable library of sqlite-vec, found without importing its package, which would import numpy."""
    package = importlib.util.find_spec("sqlite_vec")
    if package is None or package.origin is None:
        raise SpeckitError("E020", "the package sqlite-vec is not installed", actions=("install sqlite-vec",))
    return str(Path(package.origin).with_name("vec0"))


def declare_words(connection: apsw.Connection) -> None:
    """Declares `fts5vocab` tables over the full-text table, for this connection alone: nothing is written."""
    for name, kind in (("memory_words", "row"), ("memory_word_places", "instance")):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{name} USING fts5vocab('main', 'memory_fts', '{kind}')")
