"""Copies every row of a store, or of its evaluation database, to a new one, of the same engine or the other.

Rows keep their ids and their history. They are written in the order of their keys, a batch per transaction. So a copy
that was interrupted continues behind the rows that the target has already, if these are still the first ones of the
source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction, committing
from speckit_memory.memory.store.file.guarding.queries import integer_lists, rows, value
from speckit_memory.memory.store.postgres.database import PostgresDatabase
from speckit_memory.memory.store.postgres.schema import derived
from speckit_memory.memory.store.postgres.statements import Table
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface
from speckit_memory.memory.store.transfer.copying import OF_THE_FILE

BATCH = 2_000
"""Rows, and memories whose words are indexed, in one transaction."""
MOST_CHARACTERS = 4_000_000
"""Length of the texts whose words are indexed in one transaction."""

Row = tuple[Any, ...]
OnRows = Callable[[int], None]
"""Called with the number of further rows that are done."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """Number of rows of a table and a hash of them in the order of their keys; of a full-text index, of its places."""

    name: str
    rows: int
    digest: str


class _Part(Protocol):
    """Rows of one kind."""

    @property
    def name(self) -> str:
        """The name of the table."""

    def count(self, connection: Connection) -> int:
        """Number of rows."""

    def rows(self, connection: Connection) -> Iterator[Row]:
        """All rows in the order of their keys, read as they are asked for in a transaction."""

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        """Writes rows."""

    def clear(self, txn: Transaction) -> None:
        """Deletes all rows."""


@dataclass(frozen=True, slots=True)
class _TableRows:
    """The rows of a plain table; `where` leaves some of them out."""

    table: Table
    where: str = ""

    @property
    def name(self) -> str:
        return self.table.name

    def count(self, connection: Connection) -> int:
        return int(value(connection, f'SELECT count(*) FROM "{self.name}" {self.where}'))

    def rows(self, connection: Connection) -> Iterator[Row]:
        key = ", ".join(f'"{column}"' for column in self.table.key)
        return connection.execute(f'SELECT {self._columns} FROM "{self.name}" {self.where} ORDER BY {key}')

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        if isinstance(txn.connection, Connection):
            marks = ", ".join("?" * len(self.table.columns))
            txn.connection.executemany(f'INSERT INTO "{self.name}" ({self._columns}) VALUES ({marks})', found)
        else:
            txn.connection.copy_rows(self.name, self.table.columns, found)

    def clear(self, txn: Transaction) -> None:
        txn.connection.execute(f'DELETE FROM "{self.name}" {self.where}')

    @property
    def _columns(self) -> str:
        return ", ".join(f'"{column}"' for column in self.table.columns)


@dataclass(frozen=True, slots=True)
class _VectorRows:
    """The vectors of the passages, by the store's model."""

    model: str
    name: str = "chunk_vectors"

    def count(self, connection: Connection) -> int:
        return vectors.count(connection)

    def rows(self, connection: Connection) -> Iterator[Row]:
        if not vectors.dimensions(connection):
            return
        if not isinstance(connection, Connection):
            yield from connection.execute("SELECT rowid, embedding FROM chunk_vectors ORDER BY rowid")
            return
        # the table of sqlite-vec has its rows in another order
        stored = connection.execute("SELECT id FROM chunks WHERE vector = 'stored' ORDER BY id")
        chosen = "SELECT rowid, embedding FROM chunk_vectors WHERE rowid IN (SELECT value FROM carray(?))"
        for some in integer_lists((number for (number,) in stored), BATCH):
            yield from sorted(rows(connection, chosen, (some,)))

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        if isinstance(txn.connection, Connection):
            matrix = np.stack([np.frombuffer(vector, np.float32) for _, vector in found])
            vectors.store(txn, [number for number, _ in found], matrix, self.model)
            return
        if not vectors.dimensions(txn.connection):
            vectors.create(txn, len(found[0][1]) // np.float32().nbytes, self.model)
        txn.connection.copy_rows(self.name, ("rowid", "embedding"), found)

    def clear(self, txn: Transaction) -> None:
        if vectors.dimensions(txn.connection):
            txn.connection.execute("DROP TABLE chunk_vectors")
            txn.connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (vectors.MODEL, vectors.DIMENSIONS))


@dataclass(frozen=True, slots=True)
class _LastIds:
    """The highest number that a table has given, where its row is deleted: no later row gets a number again."""

    tables: tuple[Table, ...]
    name: str = "sqlite_sequence"

    def count(self, connection: Connection) -> int:
        return len(self._found(connection))

    def rows(self, connection: Connection) -> Iterator[Row]:
        return iter(self._found(connection))

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        for name, last in found:
            txn.connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            txn.connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last))

    def clear(self, txn: Transaction) -> None:
        txn.connection.execute("DELETE FROM sqlite_sequence")

    def _found(self, connection: Connection) -> list[Row]:
        last = dict(rows(connection, "SELECT name, seq FROM sqlite_sequence"))
        greatest = {
            table.name: value(connection, f'SELECT coalesce(max("{table.key[0]}"), 0) FROM "{table.name}"')
            for table in self.tables
            if table.name in last
        }
        return sorted((name, last[name]) for name, number in greatest.items() if number < last[name])


@dataclass(frozen=True, slots=True)
class _Lineage(_TableRows):
    """The rows of a table that differ in every database, so that rows next to others of them are another's."""

    others: tuple[str, ...] = ()
    """The other tables, referenced ones first."""

    def clear(self, txn: Transaction) -> None:
        for name in (*reversed(self.others), self.name):
            txn.connection.execute(f'DELETE FROM "{name}"')


class RowCopy:
    """The copy of rows from one database to another one that is not in use."""

    def __init__(self, source: Connection, target: Connection, copied: Sequence[_Part], on_rows: OnRows) -> None:
        """`source` is inside a read transaction for as long as the copy of the parts `copied` takes."""
        self._source = source
        self._target = target
        self._parts = copied
        self._on_rows = on_rows

    def run(self) -> None:
        """Copies what the target lacks."""
        for part in self._parts:
            self._copy(part)

    def _begin_changes(self) -> None:
        """Called before rows of the target change."""

    def _copy(self, part: _Part) -> None:
        """Copies the rows of a part that the target lacks. If its rows are not the first ones of the source, they are
        deleted, with the first transaction: they are a new store's, or the source has changed."""
        coming = part.rows(self._source)
        known, anew = 0, False
        with _reading(self._target):
            for row in part.rows(self._target):
                if row != next(coming, None):
                    known, anew, coming = 0, True, part.rows(self._source)
                    break
                known += 1
        self._on_rows(known)
        while (page := list(islice(coming, BATCH))) or anew:
            self._begin_changes()
            with _writing(self._target) as txn:
                if anew:
                    part.clear(txn)
                if page:
                    part.insert(txn, page)
            anew = False
            self._on_rows(len(page))


class StoreRowCopy(RowCopy):
    """The copy of a store's rows, whose words are indexed again."""

    def __init__(self, source: Connection, target: Database, on_rows: OnRows) -> None:
        """`source` is inside a read transaction for as long as the copy takes."""
        super().__init__(source, target.reader(), parts(source), on_rows)
        self._database = target
        # the words of a memory are indexed in one transaction, by ascending ids
        greatest = "memory_id) FROM postings" if isinstance(target, PostgresDatabase) else "rowid) FROM memory_fts"
        self._words_until = int(value(self._target, f"SELECT max({greatest}") or 0)

    def run(self) -> None:
        """Copies what the target lacks."""
        super().run()
        self._count_rows()
        self._index_words()
        self._count_rows()

    def _count_rows(self) -> None:
        """Has PostgreSQL learn of the new rows before they are read."""
        if isinstance(self._database, PostgresDatabase):
            self._database.count_rows()

    def _begin_changes(self) -> None:
        """Deletes the words of the target before its texts change."""
        if not self._words_until:
            return
        with _writing(self._target) as txn:
            for (memory,) in rows(self._target, "SELECT id FROM memories WHERE id <= ?", (self._words_until,)):
                fulltext.delete(txn, memory)
                surface.delete(txn, memory)
        self._words_until = 0

    def _index_words(self) -> None:
        for ids in self._memories():
            if missing := [memory for memory in ids if memory > self._words_until]:
                with _writing(self._target) as txn:
                    fulltext.fill(txn, missing)
                    surface.fill(txn, missing)
            self._on_rows(len(ids))

    def _memories(self) -> Iterator[list[int]]:
        """The ids of all memories, ascending, in lists whose words are indexed in one transaction."""
        ids: list[int] = []
        together = 0
        for memory, characters in self._source.execute("SELECT id, characters FROM memories ORDER BY id"):
            if ids and (len(ids) == BATCH or together + characters > MOST_CHARACTERS):
                yield ids
                ids, together = [], 0
            ids.append(memory)
            together += characters
        if ids:
            yield ids


def parts(source: Connection) -> list[_Part]:
    """The rows of a store, in the order in which they are copied: rows after those that they refer to, and last the
    facts about the whole store, since storing vectors writes some of them."""
    tables = dict(derived().tables)
    meta = tables.pop("meta")
    del tables["private_ids"]  # PostgreSQL keeps it itself, and in a file nothing is private
    left_out = ", ".join(f"'{key}'" for key in OF_THE_FILE)
    return [
        *map(_TableRows, tables.values()),
        _LastIds(tuple(tables.values())),
        _VectorRows(get_meta(source, vectors.MODEL) or ""),
        _TableRows(meta, f"WHERE key NOT IN ({left_out})"),
    ]


def evaluation_parts() -> list[_Part]:
    """The rows of an evaluation database, in the order in which they are copied. The first ones tell which it is."""
    tables = dict(derived(EVALUATION.steps).tables)
    meta = tables.pop("meta")
    return [_Lineage(meta, others=tuple(tables)), *map(_TableRows, tables.values())]


def total_rows(source: Connection, copied: Sequence[_Part]) -> int:
    """Number of all rows of these parts."""
    return sum(part.count(source) for part in copied)


def total_steps(source: Connection) -> int:
    """Number of steps of a store's copy: all rows, and once more each memory, whose words are indexed."""
    return total_rows(source, parts(source)) + int(value(source, "SELECT count(*) FROM memories"))


def row_digests(connection: Connection, copied: Sequence[_Part]) -> Iterator[TableDigest]:
    """The digest of each of these parts, inside a read transaction."""
    for part in copied:
        made, count = hashlib.sha256(), 0
        for row in part.rows(connection):
            made.update(repr(row).encode("utf-8", "surrogatepass"))
            count += 1
        yield TableDigest(part.name, count, made.hexdigest()[:16])


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    """A read transaction."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextmanager
def _writing(connection: Connection) -> Iterator[Transaction]:
    """A write transaction. It is not the database's own: the history of changes is being written itself."""
    connection.execute("BEGIN IMMEDIATE")
    with committing(connection) as txn:
        yield txn
