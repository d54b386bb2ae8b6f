"""Copies a store as a whole, between files and databases: rows with their ids, checkpoints, the evaluation database.

A copy is made under another name, `NAME.unfinished`, and gets its own when it has been compared with the source. So an
interrupted copy is never served, and continues when it is begun again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from speckit_memory.config.workspace.store_address import address_at, store_label
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.checkpoints import deletions
from speckit_memory.memory.store.checkpoints.folder import Folder
from speckit_memory.memory.store.evaluation.database import BUSY_TIMEOUT_MS, evaluation_file
from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.evaluation.workspace import evaluation_at
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.store_file import unfinished_file
from speckit_memory.memory.store.file.opening import STORE
from speckit_memory.memory.store.file.schema.declared import seeds
from speckit_memory.memory.store.postgres import copying as workspaces
from speckit_memory.memory.store.postgres.database import PostgresDatabase
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.segment_writing.writing import write_copied
from speckit_memory.memory.store.transfer.row_copy import (
    RowCopy,
    StoreRowCopy,
    TableDigest,
    evaluation_parts,
    parts,
    row_digests,
    total_rows,
    total_steps,
)
from speckit_memory.memory.store.transfer.word_digests import word_digests

OnProgress = Callable[[int, int], None]
SCHEMAS = (STORE.schema, EVALUATION.schema)


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """A finished copy: the tables, which are equal in both stores, and what lies next to the store. The names of the
    evaluation database's tables begin with `evaluation.`"""

    tables: tuple[TableDigest, ...]
    checkpoints: int
    deletions: int
    evaluation: bool

    @property
    def memories(self) -> int:
        """Number of memories."""
        return next(table.rows for table in self.tables if table.name == "memories")


def copy_store(source: Path, target: Path, progress: OnProgress) -> StoreCopy:
    """Copies a store to a place that holds none, as of the moment when the copy begins or continues.

    Args:
        source: The file or the store link of the store. Others may use it meanwhile.
        target: The file or the store link of the copy.
        progress: Called with the numbers of rows copied and compared, and of all of them.

    Raises:
        SpeckitError: E010 without a store, E014 if the target exists, E020 and E062 if it cannot be written, E024 if
            the copy is not equal.
    """
    _require_free(target)
    with (
        Database.open(source, create=False) as origin,
        origin.snapshot_read() as there,
        _records(source) as records,
        _unfinished(target) as copy,
        translate_errors(target),
    ):
        recorded = 0 if records is None else total_rows(records, evaluation_parts())
        count = _Counter((total_steps(there) + recorded) * 2, progress)
        StoreRowCopy(there, copy, count).run()
        with copy.snapshot_read() as here:
            pairs = zip(_digests(there), _digests(here), strict=True)
            tables = tuple(_compared(source, pairs, count))
        saved = [_copy_folder(folder(source), folder(target)) for folder in (Folder, deletions.shelf)]
        tables += _copy_evaluation(records, source, target, count)
        _finish(copy, target)
        _copy_segment(origin, target)
    return StoreCopy(tables, saved[0], saved[1], records is not None)


class _Counter:
    """Adds up rows for a progress bar."""

    def __init__(self, total: int, progress: OnProgress) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def __call__(self, further: int) -> None:
        self._done += further
        self._progress(min(self._done, self._total), self._total)


def _require_free(target: Path) -> None:
    if address_at(target):
        taken = workspaces.workspace_exists(target, SCHEMAS)
        begun = workspaces.workspace_exists(target, SCHEMAS, unfinished=True)
    else:
        taken, begun = os.path.lexists(target), unfinished_file(target).exists()
    if taken:
        actions = ("name a file that does not exist, or another workspace: ?workspace=NAME",)
        raise SpeckitError("E014", f"{store_label(target)} exists already; a copy is a new store", actions=actions)
    if not begun:
        for found in (evaluation_file(target), Folder(target).path, deletions.shelf(target).path):
            if found != target and os.path.lexists(found):
                actions = (f"move {found} away",)
                raise SpeckitError("E014", f"{found} exists already and belongs to another store", actions=actions)


@contextmanager
def _unfinished(target: Path) -> Iterator[Database]:
    """The store that is being filled."""
    if address_at(target):
        with PostgresDatabase.open(target, unfinished=True) as database:
            yield database
    else:
        with Database.open(unfinished_file(target)) as database:
            yield database


@contextmanager
def _records(store: Path) -> Iterator[Connection | None]:
    """A snapshot of a store's evaluation database; None if there is none."""
    database = evaluation_at(evaluation_file(store), create=False, busy_timeout_ms=BUSY_TIMEOUT_MS)
    with closing(database):
        if not database.is_there():
            yield None
            return
        with database.reading() as connection:
            yield connection


def _digests(connection: Connection) -> Iterator[TableDigest]:
    """The digest of each table of a store, and of the words of each full-text index, inside a read transaction."""
    yield from row_digests(connection, parts(connection))
    yield from word_digests(connection)


def _compared(
    source: Path, pairs: Iterable[tuple[TableDigest, TableDigest]], count: Callable[[int], None]
) -> Iterator[TableDigest]:
    """The digest of each table of the source, compared with that of the copy. Raises E024 for one that is not equal."""
    for wanted, found in pairs:
        if wanted != found:
            raise SpeckitError(
                "E024",
                f"the copy differs from {store_label(source)} in {wanted.name}: "
                f"{wanted.rows:,} rows with the digest "
                f"{wanted.digest}, but {found.rows:,} with {found.digest}",
                hint="The copy stays unfinished. An index of words that is out of step with its texts cannot be equal.",
                actions=("run `speckit-memory doctor --repair` on the source, then copy again",),
            )
        count(wanted.rows)
        yield wanted


def _copy_folder(source: Folder, target: Folder) -> int:
    """Copies the checkpoints or deletions of a store and compares them; returns their number."""
    if not source.path.is_dir():
        return 0
    try:
        ignored = shutil.ignore_patterns(".lock", "*.partial*")
        shutil.copytree(source.path, target.path, ignore=ignored, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise SpeckitError("E062", f"{source.path} could not be copied to {target.path}: {error}") from error
    copied = {one.name: one for one in target.all()}
    for one in source.all():
        if copied.get(one.name) != one:
            raise SpeckitError("E062", f"{one.name} of {source.path} is not equal in {target.path}")
    return len(copied)


def _copy_evaluation(
    records: Connection | None, source: Path, target: Path, count: Callable[[int], None]
) -> tuple[TableDigest, ...]:
    """Copies the evaluation database and compares it; returns the digests of its tables.

    With None, empties that of another store whose copy to this place was interrupted.
    """
    place = evaluation_file(target)
    copied = evaluation_parts()
    database = evaluation_at(place, create=records is not None, busy_timeout_ms=BUSY_TIMEOUT_MS, unfinished=True)
    with closing(database), translate_errors(place):
        if records is None:
            if database.is_there():
                with database.writing() as connection:
                    txn, first = Transaction(connection), copied[0]
                    first.clear(txn)
                    first.insert(txn, seeds(EVALUATION.steps, (first.name,))[first.name])
            return ()
        RowCopy(records, database.open(), copied, count).run()
        with database.reading() as connection:
            pairs = zip(row_digests(records, copied), row_digests(connection, copied), strict=True)
            return tuple(replace(one, name=f"evaluation.{one.name}") for one in _compared(source, pairs, count))


def _copy_segment(source: Database, target: Path) -> None:
    """Gives a finished copy the segment of its source, if it has one. Without it the copy is whole, and slower."""
    if SegmentStore(source).trusted():
        with suppress(SpeckitError), Database.open(target, create=False) as copy:
            write_copied(copy, source)


def _finish(copy: Database, target: Path) -> None:
    """Gives the copy its name."""
    if unfinished_file(evaluation_file(target)).exists():
        _rename(evaluation_file(target))
    if isinstance(copy, PostgresDatabase):
        with copy.write() as txn:
            workspaces.give_name(copy, txn, SCHEMAS)
    else:
        copy.close()
        _rename(target)


def _rename(target: Path) -> None:
    """Gives a finished file its name."""
    path = unfinished_file(target)
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise SpeckitError("E022", f"{path} is open in another process", actions=("copy again when it has ended",))
    try:
        path.replace(target)
    except OSError as error:
        raise SpeckitError("E020", f"{path} could not be renamed: {error.strerror}") from error
