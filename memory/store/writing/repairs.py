"""Repairs rows of a store that can be derived from other rows (`doctor --repair`, feature M14).

Full-text rows, token counts, vectors and states follow from texts and passages; a row that refers to a missing one is
useless. Texts, judgements and links are never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from speckit_memory.memory.store.file.checking.consistency import is_unit
from speckit_memory.memory.store.file.checking.spaces_check import MISFITS, of_another_model
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, table_exists, value
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface, token_counts


def mend(txn: Transaction, stale: Sequence[int] = ()) -> list[str]:
    """Repairs a store and returns one sentence per kind of repair. Other processes reread all memories after one.

    `stale` memories have full-text rows that differ from their texts. They are determined before the transaction, since
    comparing takes some seconds per million words, during which the transaction would block other writers.
    """
    steps: tuple[tuple[str, Callable[[Transaction], int]], ...] = (
        ("removed {} that referred to missing ones", _remove_dangling),
        ("set the sequence of ids beyond all ids in use", _draw_ids),
        ("recomputed {} of token counts", _count_tokens),
        ("rebuilt or removed {} of the full-text tables", partial(_fill_words, stale=stale)),
        ("marked {} of passages, whose vectors `speckit-memory maintain` will rebuild", _await_vectors),
        ("removed {} of the cache with a wrong number of dimensions", _fit_cache),
        ("corrected {} about pending vectors", _tell_pending),
    )
    done = [sentence.format(_count(number)) for sentence, step in steps if (number := step(txn))]
    if done:
        changes.record(txn, [row for (row,) in rows(txn.connection, "SELECT id FROM memories ORDER BY id")], "put")
    return done


def _count(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _remove_dangling(txn: Transaction) -> int:
    """Deletes rows with a dangling foreign key until none is left, as ON DELETE CASCADE would have done."""
    connection, removed = txn.connection, 0
    while found := _dangling(connection):
        for table, rowid, key in found:
            where = f"{key} NOT IN (SELECT id FROM {_parent(connection, table, key)})" if rowid is None else "rowid = ?"
            removed += len(
                rows(connection, f"DELETE FROM {table} WHERE {where} RETURNING 1", (rowid,) * (rowid is not None))
            )
    return removed


def _dangling(connection: Connection) -> list[tuple[str, int | None, str]]:
    columns = {
        (table, number): column
        for (table,) in rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'table'")
        for number, _, _, column, *_ in rows(connection, f"PRAGMA foreign_key_list({table})")
    }
    found = rows(connection, "PRAGMA foreign_key_check")
    return list(dict.fromkeys((table, rowid, columns[table, number]) for table, rowid, _, number in found))


def _parent(connection: Connection, table: str, column: str) -> str:
    keys = rows(connection, f"PRAGMA foreign_key_list({table})")
    return str(next(parent for _, _, parent, own, *_ in keys if own == column))


def _draw_ids(txn: Transaction) -> int:
    """Sets the sequence of ids beyond every id of a memory or passage, those of deleted memories included."""
    # Logs keep ids of deleted memories: a reused id would give a new memory the history of an old one.
    highest = value(
        txn.connection,
        "SELECT max(id) FROM (SELECT id FROM memories UNION ALL SELECT id FROM chunks UNION ALL "
        "SELECT memory_id FROM session_sent UNION ALL SELECT memory_id FROM selections UNION ALL "
        "SELECT memory_id FROM changes)",
    )
    following = rows(txn.connection, "SELECT next FROM id_sequence WHERE next >= 1")
    if len(following) == 1 and following[0][0] > (highest or 0):
        return 0
    txn.connection.execute("DELETE FROM id_sequence")
    txn.connection.execute("INSERT INTO id_sequence VALUES (1, ?)", ((highest or 0) + 1,))
    return 1


def _count_tokens(txn: Transaction) -> int:
    """Recomputes missing and wrong token counts."""
    connection, mended = txn.connection, 0
    every = "SELECT memory_id, title_tokens, trigger_tokens, path_tokens, tokens FROM texts"
    for memory_id, *texts, tokens in rows(connection, every):
        try:
            counted = [token_counts.count_tokens(text) for text in (*texts, *unpack_tokens(tokens))]
        except ValueError:  # they cannot be read, and are not guessed
            continue
        before = rows(connection, "SELECT * FROM token_counts WHERE memory_id = ?", (memory_id,))
        connection.execute("DELETE FROM token_counts WHERE memory_id = ?", (memory_id,))
        token_counts.insert(txn, [(memory_id, counted)])
        after = rows(connection, "SELECT * FROM token_counts WHERE memory_id = ?", (memory_id,))
        mended += before != after
    return mended


def _fill_words(txn: Transaction, stale: Sequence[int]) -> int:
    """Rebuilds missing and `stale` full-text rows and deletes those of no memory.

    A stale row is not compared again: if it was written meanwhile, rebuilding it gives the same words.
    """
    connection, mended = txn.connection, 0
    for table, of_table in (("memory_fts", fulltext), ("surface_fts", surface)):
        for row in stale:
            of_table.delete(txn, row)
        loose = rows(connection, f"SELECT rowid FROM {table} EXCEPT SELECT id FROM memories")
        for (row,) in loose:
            of_table.delete(txn, row)
        missing = rows(connection, f"SELECT id FROM memories EXCEPT SELECT rowid FROM {table}")
        mended += len(loose) + of_table.fill(txn, [row for (row,) in missing])
    return mended


def _await_vectors(txn: Transaction) -> int:
    """Marks passages as pending whose vector is missing, no unit vector or by another model; deletes vectors of no
    passage.

    If no vector is valid, the store's model and dimensions are deleted too.
    """
    connection = txn.connection
    good: set[int] = set()
    loose: set[int] = set()
    stored = {row for (row,) in rows(connection, "SELECT id FROM chunks WHERE vector = 'stored'")}
    if table_exists(connection, "chunk_vectors"):
        size = int(get_meta(connection, vectors.DIMENSIONS) or 0)
        ours = stored - {row for row, _ in of_another_model(connection)}
        for row, vector in connection.execute("SELECT rowid, embedding FROM chunk_vectors"):
            (good if row in ours and is_unit(vector, size) else loose).add(row)
        if stored and not good:
            vectors.forget_all(txn)
            return len(stored | loose)
        connection.executemany("DELETE FROM chunk_vectors WHERE rowid = ?", [(row,) for row in loose])
    else:
        stored |= {row for (row,) in rows(connection, "SELECT id FROM chunks WHERE vector <> 'pending'")}
    waiting = stored - good
    connection.executemany("UPDATE chunks SET vector = 'pending' WHERE id = ?", [(row,) for row in waiting])
    tokens = rows(
        connection, "SELECT chunk_id FROM chunk_tokens EXCEPT SELECT id FROM chunks WHERE vector <> 'pending'"
    )
    connection.executemany("DELETE FROM chunk_tokens WHERE chunk_id = ?", tokens)
    return len(waiting | loose | {row for (row,) in tokens})


def _fit_cache(txn: Transaction) -> int:
    """Deletes cached vectors whose length differs from their model's."""
    gone = f"(model_id, content_hash) IN (SELECT c.model_id, c.content_hash {MISFITS})"
    return len(rows(txn.connection, f"DELETE FROM embedding_cache WHERE {gone} RETURNING 1"))


def _tell_pending(txn: Transaction) -> int:
    """Corrects the embedding status of memories."""
    waits = "EXISTS (SELECT 1 FROM chunks c WHERE c.memory_id = memories.id AND c.vector = 'pending')"
    changed = 0
    for state, wrong in (("pending", waits), ("done", f"NOT {waits}")):
        statement = f"UPDATE memories SET embedding_status = ? WHERE embedding_status <> ? AND {wrong} RETURNING id"
        changed += len(rows(txn.connection, statement, (state, state)))
    return changed
