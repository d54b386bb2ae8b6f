"""The database file of a checkpoint: nothing is written to a complete one; an older schema is read from a copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.checkpoints.folder import Checkpoint, Folder, digest
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.failures import translate_errors
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.opening import connect, harden, vector_extension
from speckit_memory.memory.store.file.schema import migrations


def store_id(connection: Connection) -> str:
    """32 hexadecimal digits, unique to a store and equal in copies of its file; "" if they were removed by hand."""
    return str(value(connection, "SELECT store_id FROM store_identity") or "")


@contextmanager
def open_checkpoint(folder: Folder, checkpoint: Checkpoint) -> Iterator[Connection]:
    """A connection to the checkpoint's rows, in the schema of this version. Inside `folder.changing`.

    A file with an older schema is copied and migrated. Raises E061 for a file that has changed since it was written,
    and E025 for one of a newer version.
    """
    file = folder.file_of(checkpoint)
    problem = checkpoint.problem
    if not problem and digest(file) != checkpoint.sha256:
        problem = "its file has changed since it was written (the digest differs)"
    if problem:
        raise SpeckitError("E061", f"'{checkpoint.name}' cannot be restored: {problem}; nothing was changed")
    with translate_errors(file):
        connection = reading(file)
        if migrations.pending(connection):
            connection.close()
            with folder.partial() as copy:
                shutil.copyfile(file, copy)
                _bring_up_to_date(copy)
                with closing(reading(copy)) as newer:
                    yield newer
            return
        with closing(connection):
            yield connection


def reading(file: Path) -> Connection:
    """A connection to a complete file that no process writes to."""
    return _equipped(connect(str(file), only_read=True, complete=True))


def complete(file: Path) -> None:
    """Moves the whole store into its file and turns WAL mode off, so that no log is needed for reading it."""
    with closing(connect(str(file))) as connection:
        connection.pragma("journal_mode", "delete")


def _bring_up_to_date(file: Path) -> None:
    with closing(_equipped(connect(str(file)))) as connection:
        migrations.migrate(connection, file, copied=False)
    complete(file)


def _equipped(connection: Connection) -> Connection:
    connection.enable_load_extension(True)
    connection.load_extension(vector_extension())
    connection.enable_load_extension(False)
    harden(connection)
    return connection
