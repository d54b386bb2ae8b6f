"""Copies rows from one store file to another, inside one transaction of the target (feature M14).

Making a checkpoint copies from a store to a new file, restoring copies from that file to the store, and an import
copies from a file in which its texts were indexed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import below, integers, rows, table_exists, value
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface, token_sets
from speckit_memory.memory.store.transfer.arrival import assign_ids
from speckit_memory.memory.store.transfer.table_map import CHUNKS, MEMORIES, Form, forms
from speckit_memory.memory.store.writing.near_duplicates import folders_of
from speckit_memory.memory.store.writing.writer import delete_index_rows

BATCH = 2_000
"""Number of vectors read at a time: all those of a large store need not fit in memory."""
OF_THE_FILE = ("segment", "segment_forgotten", "segment_failure")
"""Keys in `meta` of facts about the file itself, not about its contents."""
_OF_VECTORS = (vectors.MODEL, vectors.DIMENSIONS, token_sets.MODEL, token_sets.WIDTH)

Ids = dict[str, dict[Any, int]]
"""For each table, ids in the target by id in the source."""


def copy(
    source: Connection,
    txn: Transaction,
    chosen: Collection[int],
    memories: dict[int, int],
    *,
    whole: bool,
    keep_ids: bool,
    folder: str = "",
) -> tuple[int, set[str]]:
    """Copies memories with all their rows, over those of the memories that exist.

    Args:
        source: The file to copy from.
        txn: A transaction of the target.
        chosen: Ids in the source of the memories to copy.
        memories: Ids in the target of those that exist there, by id in the source; those of the others are added.
        whole: Whether a whole store is copied, with rows that belong to no memory.
        keep_ids: Whether ids are kept where they are free.
        folder: The folder whose rows are copied from tables with a folder column.

    Returns:
        The number of passages whose vectors were not copied because they are by another model; and the folders of the
        memories, before and now.
    """
    connection = txn.connection
    folders = folders_of(connection, memories.values())
    _clear(txn, list(memories.values()))
    chunks = assign_ids(source, connection, chosen, memories, keep_ids)
    ids: Ids = {MEMORIES: memories, CHUNKS: chunks}
    connection.execute("PRAGMA defer_foreign_keys = ON")  # checked at COMMIT: rows may refer to rows copied later
    for form in forms(source):
        if form.references or form.name == MEMORIES or whole or form.table.folder:
            scope, parameters = below(form.table.folder, "" if whole or not form.table.folder else folder)
            columns = ", ".join(f'"{column}"' for column in form.columns)
            found = source.execute(f"SELECT {columns} FROM {form.name} WHERE {scope}", parameters)
            drawn = form.own and form.name not in ids
            coming = _arranged(found, connection, form, keep_ids) if drawn else ((row, False) for row in found)
            put(connection, form, coming, ids, outlive=keep_ids and (whole or not folder))
    pending = _copy_vectors(source, txn, chunks)
    fulltext.fill(txn, memories.values())
    surface.fill(txn, list(memories.values()))
    return pending, folders | folders_of(connection, memories.values())


def put(
    connection: Connection,
    form: Form,
    coming: Iterable[tuple[Sequence[Any], bool]],
    ids: Ids,
    *,
    outlive: bool = False,
) -> int:
    """Writes rows of a table, with the ids of the target instead of those of the source.

    Args:
        connection: The target, inside a transaction.
        form: The table.
        coming: The values of each row by column, and whether it gets a new id.
        ids: Ids in the target by those in the source, of any type; those of the rows are added.
        outlive: Whether rows that outlive their memory are written without it.

    Returns:
        The number of rows left out because a row to which they refer is missing.
    """
    columns, known = form.columns, ids.setdefault(form.name, {})
    own = columns.index(form.own) if form.own else None
    assigned = form.name in (MEMORIES, CHUNKS)
    references = [(columns.index(each.column), each) for each in form.references]
    later: list[tuple[str, Any, Any]] = []
    numbered = own is not None and not assigned
    sql, left_out = _insertion(form, form.columns, numbered), 0
    unnumbered = _insertion(form, [column for column in form.columns if column != form.own], numbered)
    for row, anew in coming:
        values = list(row)
        if own is not None and (assigned or anew):
            values[own] = known.get(row[own])
        for place, each in references:
            # References among the rows of a table are set below, when all of them have their ids.
            values[place] = None if each.parent == form.name else ids[each.parent].get(row[place])
            if values[place] is None and form.table.outlives and outlive:
                values[place] = row[place]
        missing = assigned and own is not None and values[own] is None
        if missing or any(each.required and values[place] is None for place, each in references):
            left_out += 1
            continue
        if own is None or assigned:
            connection.execute(sql, values)
        else:
            unset = values[own] is None  # the target numbers the row
            number = value(
                connection, unnumbered if unset else sql, values[:own] + values[own + 1 :] if unset else values
            )
            known[row[own]] = number
            later += [(name, row[columns.index(name)], row[own]) for name in form.among]
    for name, other, mine in later:
        if other in known:
            connection.execute(f"UPDATE {form.name} SET {name} = ? WHERE {form.own} = ?", (known[other], known[mine]))
    return left_out


def delete(
    connection: Connection, form: Form, memories: Sequence[int], columns: Sequence[str], where: str = "1"
) -> None:
    """Deletes rows of a table.

    Args:
        connection: The store, inside a transaction.
        form: The table.
        memories: Ids of memories.
        columns: The columns that must all hold one of these.
        where: A further condition.
    """
    # Each + keeps SQLite from probing an index for every pair of memories, which is quadratic.
    inside = " AND +".join(f"{column} IN (SELECT value FROM carray(?1))" for column in columns)
    connection.execute(f"DELETE FROM {form.name} WHERE {inside} AND {where}", (integers(memories),))


def forget_what_belongs_to_no_memory(txn: Transaction, folder: str = "") -> None:
    """Deletes the rows that belong to no memory: all of them, or those that name a folder."""
    for form in forms(txn.connection):
        if form.loose and (form.table.folder or not folder):
            scope, parameters = below(form.table.folder, folder)
            txn.connection.execute(f"DELETE FROM {form.name} WHERE {scope}", parameters)


def copy_facts(source: Connection, txn: Transaction) -> None:
    """Replaces the facts about the whole store, except those about its file and its vectors (for these see `copy`)."""
    mine = ", ".join(f"'{key}'" for key in (*OF_THE_FILE, *_OF_VECTORS))
    txn.connection.execute(f"DELETE FROM meta WHERE key NOT IN ({mine})")
    for key, fact in rows(source, f"SELECT key, value FROM meta WHERE key NOT IN ({mine})"):
        set_meta(txn, key, fact)


def models(connection: Connection) -> tuple[str | None, ...]:
    """The models of a store's vectors and tokens, and their sizes."""
    return tuple(get_meta(connection, key) for key in _OF_VECTORS)


def _clear(txn: Transaction, memories: Sequence[int]) -> None:
    """Deletes the rows of memories in all tables except `memories`; edges only if both ends are among them."""
    for memory in memories:
        delete_index_rows(txn, memory)
    # In reverse order of writing: referring tables first.
    for form in reversed(forms(txn.connection)):
        if form.owners:
            delete(txn.connection, form, memories, form.owners)


def _arranged(
    found: Iterable[tuple[Any, ...]], connection: Connection, form: Form, keep_ids: bool
) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Rows of a table with its own ids, each with whether it gets a new id. If one id of a memory's rows is taken in
    the target, all of them get new ids, since ids define their order.

    These rows come last, in order, so that no new id takes the place of one that another row keeps.
    """
    own, *owners = (form.columns.index(column) for column in (form.own, *form.owners))
    coming = sorted(found, key=itemgetter(own))
    here = {number for (number,) in rows(connection, f"SELECT {form.own} FROM {form.name}")}
    crowded = {tuple(row[place] for place in owners) for row in coming if not keep_ids or row[own] in here}
    anew = [tuple(row[place] for place in owners) in crowded for row in coming]
    return iter(sorted(zip(coming, anew, strict=True), key=itemgetter(1)))


def _insertion(form: Form, written: Sequence[str], numbered: bool) -> str:
    columns = ", ".join(f'"{column}"' for column in written)
    marks = ", ".join("?" * len(written))
    if form.name != MEMORIES:
        returned = f" RETURNING {form.own}" if numbered else ""
        return f"INSERT OR REPLACE INTO {form.name} ({columns}) VALUES ({marks}){returned}"
    # REPLACE would delete the row first, and with it all rows that refer to it (ON DELETE CASCADE)
    changed = ", ".join(f"{column} = excluded.{column}" for column in form.columns if column != form.own)
    return f"INSERT INTO memories ({columns}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {changed}"


def _copy_vectors(source: Connection, txn: Transaction, chunks: dict[int, int]) -> int:
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
    found = source.execute("SELECT rowid, embedding FROM chunk_vectors ORDER BY rowid")
    while batch := list(islice(found, BATCH)):
        wanted = [(chunks[row], vector) for row, vector in batch if row in chunks]
        if wanted:
            matrix = np.stack([np.frombuffer(vector, np.float32) for _, vector in wanted])
            vectors.store(txn, [chunk for chunk, _ in wanted], matrix, theirs[0])
    return 0


def _leave_pending(connection: Connection, chunks: Iterable[int]) -> int:
    chosen = [(chunk,) for chunk in chunks]
    connection.executemany("DELETE FROM chunk_tokens WHERE chunk_id = ?", chosen)
    connection.executemany("UPDATE chunks SET vector = 'pending' WHERE id = ?", chosen)
    connection.executemany(
        "UPDATE memories SET embedding_status = 'pending' WHERE id = (SELECT memory_id FROM chunks WHERE id = ?)",
        chosen,
    )
    return len(chosen)
