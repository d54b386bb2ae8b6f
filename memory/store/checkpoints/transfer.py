"""Copies rows from one store file to another, inside one transaction of the target (feature M14).

Making a checkpoint copies from a store to a new file, restoring copies from that file to the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any

import apsw
import numpy as np

from speckit_memory.memory.store.checkpoints.table_map import CHUNKS, MEMORIES, Form, forms
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, table_exists
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface, token_sets

BATCH = 2_000
"""Number of rows read at a time."""
_OF_THE_FILE = ("segment", "segment_forgotten", "segment_failure")
"""Keys in `meta` of facts about the file itself, not about its contents."""
_OF_VECTORS = (vectors.MODEL, vectors.DIMENSIONS, token_sets.MODEL, token_sets.WIDTH)

Ids = dict[str, dict[int, int]]
"""For each table, ids in the target by id in the source."""


@dataclass(frozen=True, slots=True)
class TransferReport:
    """Number of copied rows by table, and of passages whose vectors were not copied because they are by another
    model."""

    rows: dict[str, int]
    pending: int


def within(folder: str) -> tuple[str, tuple[str, ...]]:
    """SQL condition and parameters for the memories of a folder and its subfolders ("" for all)."""
    if not folder:
        return "1", ()
    # substr, since the name of a folder may hold the signs of LIKE
    return "(folder = ?1 OR substr(folder, 1, length(?1) + 1) = ?1 || '/')", (folder,)


def copy(
    source: apsw.Connection, txn: Transaction, ids: Ids, *, whole: bool, keep_ids: bool, folder: str = ""
) -> TransferReport:
    """Copies memories with all their rows.

    Args:
        source: The file to copy from.
        txn: A transaction of the target, where only rows in `memories` may exist for these memories.
        ids: Ids in the target: `ids[MEMORIES]` of the memories and `ids[CHUNKS]` of their passages.
        whole: Whether a whole store is copied, with rows that belong to no memory.
        keep_ids: Whether ids of other rows are kept where they are free.
        folder: The folder whose rows are copied from tables with a folder column.

    Returns:
        The numbers of copied rows and of pending passages.
    """
    connection = txn.connection
    connection.execute("PRAGMA defer_foreign_keys = ON")  # checked at COMMIT: rows may refer to rows copied later
    counts: dict[str, int] = {}
    for form in forms(source):
        belongs = bool(form.references) or form.kept.name == MEMORIES
        if belongs or whole or form.kept.folder:
            counts[form.kept.name] = _copy_rows(source, connection, form, ids, keep_ids, "" if whole else folder)
    pending = _copy_vectors(source, txn, ids[CHUNKS])
    fulltext.fill(txn, ids[MEMORIES].values())
    surface.fill(txn, ids[MEMORIES].values())
    return TransferReport(counts, pending)


def clear(txn: Transaction, memory_ids: Sequence[int]) -> None:
    """Deletes the rows of memories in all tables except `memories`; edges only if both ends are among them."""
    connection = txn.connection
    for memory_id in memory_ids:
        vectors.delete_of_memory(txn, memory_id)
        fulltext.delete(txn, memory_id)
        surface.delete(txn, memory_id)
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS cleared (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.cleared")
    connection.executemany("INSERT INTO temp.cleared VALUES (?)", [(memory_id,) for memory_id in memory_ids])
    # In reverse order of writing: referring tables first.
    for form in reversed(forms(connection)):
        if form.kept.name != MEMORIES and form.owners:
            all_of = " AND ".join(f"{column} IN (SELECT id FROM temp.cleared)" for column in form.owners)
            connection.execute(f"DELETE FROM {form.kept.name} WHERE {all_of}")
    connection.execute("DROP TABLE temp.cleared")


def forget_what_belongs_to_no_memory(txn: Transaction, folder: str = "") -> None:
    """Deletes the rows that belong to no memory: all of them, or those that name a folder."""
    for form in forms(txn.connection):
        if form.loose and (form.kept.folder or not folder):
            inside, parameters = within(folder)
            scope = inside.replace("folder", form.kept.folder) if folder else inside
            txn.connection.execute(f"DELETE FROM {form.kept.name} WHERE {scope}", parameters)


def copy_facts(source: apsw.Connection, txn: Transaction) -> None:
    """Replaces the facts about the whole store, except those about its file and its vectors (for these see `copy`)."""
    mine = ", ".join(f"'{key}'" for key in (*_OF_THE_FILE, *_OF_VECTORS))
    txn.connection.execute(f"DELETE FROM meta WHERE key NOT IN ({mine})")
    for key, fact in rows(source, f"SELECT key, value FROM meta WHERE key NOT IN ({mine})"):
        set_meta(txn, key, fact)


def _copy_rows(
    source: apsw.Connection, connection: apsw.Connection, form: Form, ids: Ids, keep_ids: bool, folder: str
) -> int:
    name, columns = form.kept.name, form.columns
    # own: position of the row's own id; known: new ids by old ones, for rows of later tables that refer to these
    own = columns.index(form.own) if form.own else None
    known = ids.setdefault(name, {})
    scope, parameters = (
        (within(folder)[0].replace("folder", form.kept.folder), (folder,)) if folder and form.kept.folder else ("1", ())
    )
    among_themselves = [columns.index(each.column) for each in form.references if each.parent == name]
    later: list[tuple[str, int, int]] = []
    count = 0
    drawn = own is not None and name not in (MEMORIES, CHUNKS)
    found = source.execute(f"SELECT {_list(columns)} FROM {name} WHERE {scope}", parameters)
    for row, anew in _arranged(found, connection, form, keep_ids) if drawn else ((row, False) for row in found):
        values = list(row)
        if name in (MEMORIES, CHUNKS):
            if values[own or 0] not in known:
                continue
            values[own or 0] = known[values[own or 0]]
        if not _follow(values, form, ids, keep_ids and not folder):
            continue
        if anew:
            values[own or 0] = None
        connection.execute(_insertion(form), values)
        if drawn:
            known[row[own or 0]] = connection.last_insert_rowid()
            later += [(columns[place], row[place], row[own or 0]) for place in among_themselves if row[place]]
        count += 1
    # references within the table, now that all its rows have their ids
    for column, other, mine in later:
        turned = f"UPDATE {name} SET {column} = ? WHERE {form.own} = ?"
        connection.execute(turned, (known.get(other), known[mine]))
    return count


def _follow(values: list[Any], form: Form, ids: Ids, outlive: bool) -> bool:
    """Replaces the references of a row by ids in the target; False if a required one is missing. References to rows of
    the same table, which may follow later, are set to None."""
    for each in form.references:
        place = form.columns.index(each.column)
        before, values[place] = (
            values[place],
            ids[each.parent].get(values[place]) if each.parent != form.kept.name else None,
        )
        if values[place] is None and each.outlives and outlive and each.parent != form.kept.name:
            values[place] = before
        if values[place] is None and each.required:
            return False
    return True


def _list(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _arranged(
    found: Iterable[tuple[Any, ...]], connection: apsw.Connection, form: Form, keep_ids: bool
) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Rows of a table with its own ids, each with whether it gets a new id. If one id of a memory's rows is taken in
    the target, all of them get new ids, since ids define their order.

    These rows come last, in order, so that no new id takes the place of one that another row keeps.
    """
    own, *owners = (form.columns.index(column) for column in (form.own, *form.owners))
    coming = sorted(found, key=itemgetter(own))
    here = {number for (number,) in rows(connection, f"SELECT {form.own} FROM {form.kept.name}")}
    anew: list[tuple[Any, ...]] = []
    crowded = {tuple(row[place] for place in owners) for row in coming if not keep_ids or row[own] in here}
    for row in coming:
        if tuple(row[place] for place in owners) in crowded:
            anew.append(row)
        else:
            yield row, False
    yield from ((row, True) for row in anew)


def _insertion(form: Form) -> str:
    columns = form.columns
    marks = ", ".join("?" * len(columns))
    if form.kept.name != MEMORIES:
        return f"INSERT OR REPLACE INTO {form.kept.name} ({_list(columns)}) VALUES ({marks})"
    # REPLACE would delete the row first, and with it all rows that refer to it (ON DELETE CASCADE)
    changed = ", ".join(f"{column} = excluded.{column}" for column in columns if column != form.own)
    return f"INSERT INTO memories ({_list(columns)}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {changed}"


def _copy_vectors(source: apsw.Connection, txn: Transaction, chunks: dict[int, int]) -> int:
    """Copies vectors and tokens if both stores use the same models; otherwise marks the passages as pending and returns
    their number."""
    connection = txn.connection
    theirs, ours = models(source), models(connection)
    if ours[0] is not None and theirs[0] is not None and theirs != ours:
        return _leave_pending(connection, chunks.values())
    if ours[0] is None:
        for key, fact in zip(_OF_VECTORS, theirs, strict=True):
            if fact is not None and key not in (vectors.MODEL, vectors.DIMENSIONS):
                set_meta(txn, key, fact)
    if theirs[0] is None or not table_exists(source, "chunk_vectors"):
        return 0
    # In batches: all vectors of a large store need not fit in memory.
    for batch in _batches(source.execute("SELECT rowid, embedding FROM chunk_vectors ORDER BY rowid")):
        wanted = [(chunks[row], vector) for row, vector in batch if row in chunks]
        if wanted:
            matrix = np.stack([np.frombuffer(vector, np.float32) for _, vector in wanted])
            vectors.store(txn, [chunk for chunk, _ in wanted], matrix, theirs[0])
    return 0


def models(connection: apsw.Connection) -> tuple[str | None, ...]:
    """The models of a store's vectors and tokens, and their sizes."""
    return tuple(get_meta(connection, key) for key in _OF_VECTORS)


def _leave_pending(connection: apsw.Connection, chunks: Iterable[int]) -> int:
    chosen = [(chunk,) for chunk in chunks]
    connection.executemany("DELETE FROM chunk_tokens WHERE chunk_id = ?", chosen)
    connection.executemany("UPDATE chunks SET vector = 'pending' WHERE id = ?", chosen)
    connection.executemany(
        "UPDATE memories SET embedding_status = 'pending' WHERE id = (SELECT memory_id FROM chunks WHERE id = ?)",
        chosen,
    )
    return len(chosen)


def _batches(found: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    while batch := list(islice(found, BATCH)):
        yield batch
