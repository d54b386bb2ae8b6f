"""Reading what is shared by all threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from speckit_memory.memory.store.file.connection import Database


@contextmanager
def committed_read(database: Database) -> Iterator[apsw.Connection]:
    """A read of one committed state. Raises RuntimeError inside an open transaction of the same thread.

    That transaction would show its own changes, which nobody else may see yet and which may still be undone.
    """
    if database.reader().in_transaction:
        raise RuntimeError("the read model cannot be brought up to date inside a transaction")
    with database.snapshot_read() as connection:
        yield connection
