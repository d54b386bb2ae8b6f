"""Makes checkpoints of a whole store or of a folder (feature M14)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speckit_memory.config.workspace.store_address import address_at
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.checkpoints.checkpoint_file import complete, reading, store_id
from speckit_memory.memory.store.checkpoints.folder import FAULTS, Checkpoint, Folder, digest
from speckit_memory.memory.store.file.checking.consistency import inconsistencies
from speckit_memory.memory.store.file.connection import Connection, Database, DriverError
from speckit_memory.memory.store.file.copying import copy_pages
from speckit_memory.memory.store.file.guarding.failures import failure
from speckit_memory.memory.store.file.guarding.queries import below, rows, value
from speckit_memory.memory.store.file.schema import migrations
from speckit_memory.memory.store.missing import EmptyFolderError
from speckit_memory.memory.store.transfer import arrival, copying
from speckit_memory.memory.store.transfer.table_map import forms

PAGES = 2_000
"""Number of pages copied between two reports of progress: 8 MiB."""
OnPages = Callable[[int, int], None]
"""Called with the numbers of copied and of all pages; an exception from it ends the copy and leaves nothing behind."""
SPARE_BYTES = 16 << 20
"""Free disk space required in addition to the copy."""


@dataclass(frozen=True, slots=True)
class CreatedCheckpoint:
    """A new checkpoint, and the names of older ones that were removed."""

    checkpoint: Checkpoint
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """The number of checkpoints that are kept, and for how many days (None: without limit)."""

    keep: int
    days: float | None


def make(
    database: Database,
    name: str,
    *,
    now: float,
    limits: RetentionLimits,
    folder: str = "",
    metadata: Mapping[str, Any] | None = None,
    spared: tuple[str, ...] = (),
    chosen: tuple[int, ...] = (),
    shelf: Folder | None = None,
    progress: OnPages = lambda _done, _total: None,
) -> CreatedCheckpoint:
    """Saves the current state as a checkpoint, then removes old ones beyond the limits.

    The copy is read back before it becomes a checkpoint: SQLite's integrity check, and the row counts of the store.

    Args:
        database: The store.
        name: The new name.
        now: The time, in epoch seconds.
        limits: Which older checkpoints are kept.
        folder: The folder to save, with its subfolders; "" for the whole store.
        metadata: JSON values saved with it.
        spared: Names of checkpoints that are not removed.
        chosen: Ids of the memories to save, without rows that belong to no memory; all when empty.
        shelf: The folder to save to; that of the store's checkpoints if None.
        progress: Called during a copy of the whole store.

    Returns:
        The new checkpoint and the names of the removed ones.

    Raises:
        SpeckitError: E030 (invalid name), E062 (cannot be written), E063 (name taken) or E080 (empty folder); nothing
            is left behind then.
    """
    shelf = shelf or Folder(database.path)
    shelf.require_new(name)
    with shelf.changing():
        shelf.require_new(name)  # again under the lock: another process may have taken the name
        with shelf.partial() as partial, _translate_errors(name, partial):
            _require_room(database, shelf)
            # One snapshot for the copy and its counts; writers go on meanwhile.
            with database.snapshot_read() as connection:
                schema, whose = migrations.applied_migrations(connection)[-1], store_id(connection)
                with _translate_errors(name, partial):
                    if folder or chosen or address_at(database.path):  # a store in PostgreSQL has no pages to copy
                        counts = _copy_part(connection, partial, folder, chosen)
                    else:
                        counts = _copy_all(connection, partial, progress)
            complete(partial)
            faults = _verified(partial, counts)
            made = Checkpoint(
                name=name,
                created_at=now,
                folder=folder,
                metadata=dict(metadata or {}),
                store_id=whose,
                schema=schema,
                file=f"{os.urandom(8).hex()}.db",
                bytes=partial.stat().st_size,
                sha256=digest(partial),
                rows=counts,
                faults=faults,
            )
            shelf.add(partial, made)
        return CreatedCheckpoint(made, tuple(shelf.drop_old(limits.keep, limits.days, now, (name, *spared))))


@contextmanager
def _translate_errors(name: str, file: Path) -> Iterator[None]:
    """Turns errors of the system, and of the driver on writing the file, into E062."""
    try:
        yield
    except OSError as error:
        raise SpeckitError("E062", f"'{name}' was not made: {error.strerror}") from error
    except DriverError as error:
        told = failure(error, file)
        raise SpeckitError("E062", f"'{name}' was not made: {told.problems[0].message}") from error


def count_rows(connection: Connection) -> dict[str, int]:
    """Number of rows of each kept table."""
    return {form.name: value(connection, f"SELECT count(*) FROM {form.name}") for form in forms(connection)}


def _copy_all(connection: Connection, partial: Path, progress: OnPages) -> dict[str, int]:
    """Copies the pages of the snapshot of the connection's transaction, regardless of concurrent writers."""
    os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    copy_pages(connection, partial, PAGES, progress)
    return count_rows(connection)


def _copy_part(connection: Connection, partial: Path, folder: str, chosen: tuple[int, ...]) -> dict[str, int]:
    inside, parameters = below("folder", folder)
    memories = [row for (row,) in rows(connection, f"SELECT id FROM memories WHERE {inside}", parameters)]
    if folder and not memories:
        raise EmptyFolderError(folder)
    if chosen:
        memories = sorted({*memories} & {*chosen})
    with Database.open(partial) as copy:
        with copy.write() as txn:
            copying.copy_facts(connection, txn)
            copying.copy(connection, txn, memories, {}, whole=not (folder or chosen), keep_ids=True, folder=folder)
            if chosen:
                copying.forget_what_belongs_to_no_memory(txn)
            arrival.keep_outer_edges(connection, txn, memories)
            sequence = value(connection, "SELECT next FROM id_sequence")
            txn.connection.execute("UPDATE id_sequence SET next = ?", (sequence,))
        return count_rows(copy.reader())


def _verified(file: Path, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Reads a copy back. Raises E062 if it is damaged or has other row counts; returns other faults, which the original
    store has too."""
    with closing(reading(file)) as connection:
        damage = [line for (line,) in connection.execute("PRAGMA integrity_check(5)") if line != "ok"]
        found = count_rows(connection)
        if damage or found != dict(counts):
            what = damage[0] if damage else f"it has {found} rows instead of {dict(counts)}"
            raise SpeckitError("E062", f"the copy was read back and is damaged: {what}")
        return tuple(inconsistencies(connection)[:FAULTS])


def _require_room(database: Database, shelf: Folder) -> None:
    pages = database.reader().pragma("page_count") * database.reader().pragma("page_size")
    free = shutil.disk_usage(shelf.path).free
    if free < pages + SPARE_BYTES:
        needed, there = (pages + SPARE_BYTES) >> 20, free >> 20
        message = f"a copy of {database.path} needs {needed} MB and {there} MB are free"
        raise SpeckitError("E062", message, actions=("free disk space", "delete older checkpoints"))
