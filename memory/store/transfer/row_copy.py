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
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction, committing
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.postgres.database import PostgresDatabase
from speckit_memory.memory.store.postgres.schema import derived
from speckit_memory.memory.store.postgres.statements import Table
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface
from speckit_memory.memory.store.transfer.copying import OF_THE_FILE

BATCH = 2_000
WORDS_BATCH = 200
"""Memories whose words are indexed in one transaction."""
_FIELDS = {"title": 0, "triggers": 1, "path": 2, "body": 3}
_SURFACE_FIELDS = {"title": 0, "body": 1}

Row = tuple[Any, ...]
OnRows = Callable[[int], None]
"""Called with the number of further rows that are done."""


@dataclass(frozen=True, slots=True)
class TableDigest:
    """Number of rows of a table, and a hash of all of them in the order of their keys."""

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

    def pages(self, connection: Connection) -> Iterator[list[Row]]:
        """All rows in the order of their keys, a page at a time."""

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        """Writes rows."""

    def clear(self, txn: Transaction) -> None:
        """Deletes all rows."""


@dataclass(frozen=True, slots=True)
class _TableRows:
    """The rows of a plain table; `where` leaves some of them out."""

    table: Table
    where: str = "1 = 1"

    @property
    def name(self) -> str:
        return self.table.name

    def count(self, connection: Connection) -> int:
        return int(value(connection, f'SELECT count(*) FROM "{self.name}" WHERE {self.where}'))

    def pages(self, connection: Connection) -> Iterator[list[Row]]:
        columns = ", ".join(f'"{column}"' for column in self.table.columns)
        key = ", ".join(f'"{column}"' for column in self.table.key)
        of_key = itemgetter(*map(self.table.columns.index, self.table.key))
        after = ""
        last: Row = ()
        while True:
            sql = f'SELECT {columns} FROM "{self.name}" WHERE {self.where} {after} ORDER BY {key} LIMIT {BATCH}'
            page = rows(connection, sql, last)
            if page:
                yield page
            if len(page) < BATCH:
                return
            # a single column is no tuple
            last = of_key(page[-1]) if len(self.table.key) > 1 else (of_key(page[-1]),)
            after = f"AND ({key}) > ({', '.join('?' * len(last))})"

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        columns = ", ".join(f'"{column}"' for column in self.table.columns)
        marks = ", ".join("?" * len(self.table.columns))
        txn.connection.executemany(f'INSERT INTO "{self.name}" ({columns}) VALUES ({marks})', found)

    def clear(self, txn: Transaction) -> None:
        txn.connection.execute(f'DELETE FROM "{self.name}" WHERE {self.where}')


@dataclass(frozen=True, slots=True)
class _VectorRows:
    """The vectors of the passages, by the store's model."""

    model: str
    name: str = "chunk_vectors"

    def count(self, connection: Connection) -> int:
        return vectors.count(connection)

    def pages(self, connection: Connection) -> Iterator[list[Row]]:
        if not vectors.dimensions(connection):
            return
        last = 0
        sql = f"SELECT id FROM chunks WHERE vector = 'stored' AND id > ? ORDER BY id LIMIT {BATCH}"
        while ids := [number for (number,) in rows(connection, sql, (last,))]:
            last = ids[-1]
            chosen = "SELECT rowid, embedding FROM chunk_vectors WHERE rowid IN (SELECT value FROM carray(?))"
            yield sorted(rows(connection, chosen, (integers(ids),)))

    def insert(self, txn: Transaction, found: Sequence[Row]) -> None:
        matrix = np.stack([np.frombuffer(vector, np.float32) for _, vector in found])
        vectors.store(txn, [number for number, _ in found], matrix, self.model)

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

    def pages(self, connection: Connection) -> Iterator[list[Row]]:
        if found := self._found(connection):
            yield found

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

    def _copy(self, part: _Part, *, anew: bool = False) -> None:
        """Copies the rows of a part. If `anew`, those of the target are deleted, with the first transaction: they are a
        new store's, or the source has changed."""
        there = iter(()) if anew else part.pages(self._target)
        done = 0
        for page in part.pages(self._source):
            known = next(there, [])
            if known != page[: len(known)]:
                break
            if len(known) < len(page):
                there = iter(())  # these were the target's last rows
                self._begin_changes()
                with _writing(self._target) as txn:
                    if anew and not done:
                        part.clear(txn)
                    part.insert(txn, page[len(known) :])
            done += len(page)
            self._on_rows(len(page))
        else:
            known = next(there, [])
            if anew and not done:
                self._begin_changes()
                with _writing(self._target) as txn:
                    part.clear(txn)
        if known:
            self._on_rows(-done)
            self._copy(part, anew=True)


class StoreRowCopy(RowCopy):
    """The copy of a store's rows, whose words are indexed again."""

    def __init__(self, source: Connection, target: Database, on_rows: OnRows) -> None:
        """`source` is inside a read transaction for as long as the copy takes."""
        super().__init__(source, target.reader(), parts(source), on_rows)
        # the words of a memory are indexed in one transaction, by ascending ids
        greatest = "memory_id) FROM postings" if isinstance(target, PostgresDatabase) else "rowid) FROM memory_fts"
        self._words_until = int(value(self._target, f"SELECT max({greatest}") or 0)

    def run(self) -> None:
        """Copies what the target lacks."""
        super().run()
        self._index_words()

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
        until = self._words_until
        self._on_rows(value(self._target, "SELECT count(*) FROM memories WHERE id <= ?", (until,)))
        chosen = f"SELECT id FROM memories WHERE id > ? ORDER BY id LIMIT {WORDS_BATCH}"
        while ids := [number for (number,) in rows(self._target, chosen, (until,))]:
            until = ids[-1]
            with _writing(self._target) as txn:
                fulltext.fill(txn, ids)
                surface.fill(txn, ids)
            self._on_rows(len(ids))


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
        _TableRows(meta, f"key NOT IN ({left_out})"),
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
    """The digest of each of these parts."""
    for part in copied:
        yield _digest(part.name, (row for page in part.pages(connection) for row in page))


def digests(database: Database, connection: Connection) -> Iterator[TableDigest]:
    """The digest of each table, and of the words of each full-text index."""
    yield from row_digests(connection, parts(connection))
    for name, words in words_of(database, connection).items():
        yield _digest(name, words)


def _digest(name: str, found: Iterator[Any]) -> TableDigest:
    made, count = hashlib.sha256(), 0
    for row in found:
        made.update(repr(row).encode("utf-8", "surrogatepass"))
        count += 1
    return TableDigest(name, count, made.hexdigest()[:16])


def words_of(database: Database, connection: Connection) -> dict[str, Iterator[Row]]:
    """The words of both full-text indexes by their names: each word, the memory, and its fields and places in it."""
    if isinstance(database, PostgresDatabase):
        return {
            "memory_fts": _postings(connection, "analysed"),
            "surface_fts": _postings(connection, "written"),
        }
    connection.execute("DROP TABLE IF EXISTS temp.surface_words")
    connection.execute("CREATE VIRTUAL TABLE temp.surface_words USING fts5vocab('main', 'surface_fts', 'instance')")
    return {
        "memory_fts": _vocabulary(connection, "memory_word_places", _FIELDS),
        "surface_fts": _vocabulary(connection, "surface_words", _SURFACE_FIELDS),
    }


def _vocabulary(connection: Connection, table: str, fields: dict[str, int]) -> Iterator[Row]:
    found = connection.execute(f"SELECT term, doc, col, offset FROM temp.{table}")
    for (term, memory), places in groupby(found, itemgetter(0, 1)):
        yield term, memory, sorted((fields[column], offset) for _, _, column, offset in places)


def _postings(connection: Connection, column: str) -> Iterator[Row]:
    from speckit_memory.memory.store.postgres.postings import field_and_offset, unpack

    table = Table("postings", ("term", "memory_id", column), ("term", "memory_id"))
    for page in _TableRows(table, f"{column} IS NOT NULL AND term <> ''").pages(connection):
        for (term, memory, _), places in zip(page, unpack([row[2] for row in page]), strict=True):
            yield term, memory, sorted(map(field_and_offset, places))


@contextmanager
def _writing(connection: Connection) -> Iterator[Transaction]:
    """A write transaction. It is not the database's own: the history of changes is being written itself."""
    connection.execute("BEGIN IMMEDIATE")
    with committing(connection) as txn:
        yield txn
