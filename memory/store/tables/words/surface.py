"""The full-text table of words as they are written: one row per memory, of its title and its text (feature C2).

The indexes of analysed tokens hold stems, and no stop words. This table tells which memories hold the very words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import apsw
import numpy as np

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.file.schema.surface_schema import COLUMNS_AND_TOKENISER
from speckit_memory.pipeline.ports import Ids

_STORED = "(rowid, title, body) SELECT m.id, m.title, t.body FROM memories m JOIN texts t ON t.memory_id = m.id"
"""What the rows are made of."""
_FILL = f"INSERT INTO surface_fts {_STORED} WHERE m.id = ?"
_BEGIN_ANEW = f"""
CREATE VIRTUAL TABLE temp.surface_anew USING fts5 ({COLUMNS_AND_TOKENISER});
CREATE VIRTUAL TABLE temp.surface_anew_places USING fts5vocab (temp, surface_anew, instance);
CREATE VIRTUAL TABLE temp.surface_places USING fts5vocab (main, surface_fts, instance);
"""
_ANEW = f"""
INSERT INTO temp.surface_anew {_STORED}
WHERE m.id IN (SELECT value FROM carray(?)) AND typeof(m.title) = 'text' AND typeof(t.body) = 'text'
"""
_END_ANEW = "DROP TABLE temp.surface_anew_places; DROP TABLE temp.surface_places; DROP TABLE temp.surface_anew;"
_UNQUOTABLE = re.compile('["\\0\ud800-\udfff]+')
"""What ends a string of an expression, or is in no file. To the tokeniser it stands between words."""


def fill(txn: Transaction, memory_ids: Iterable[int]) -> int:
    """Makes the rows of memories that have none, of the titles and texts that are stored; returns how many."""
    chosen = [(memory_id,) for memory_id in memory_ids]
    txn.connection.executemany(_FILL, chosen)
    return len(chosen)


def delete(txn: Transaction, memory_id: int) -> None:
    """Removes the row of a memory."""
    txn.connection.execute("DELETE FROM surface_fts WHERE rowid = ?", (memory_id,))


def quoted(phrase: str) -> str:
    """A phrase as expressions of the table have it."""
    return f'"{_UNQUOTABLE.sub(" ", phrase)}"'


def holding(connection: apsw.Connection, phrases: Sequence[str], limit: int, allowed: Ids | None = None) -> Ids:
    """The first `limit` memories, by id, that hold the words of each phrase in a row; `allowed` are the only ones
    wanted.

    Case does not count, nor what stands between words. A phrase without words is one that every memory holds; phrases
    that are all without words are held by none.
    """
    expression = " ".join(map(quoted, phrases)) or '""'
    # The unary plus makes the restriction a test on each match; as a constraint it would run the search once per id.
    within = "" if allowed is None else "AND +rowid IN (SELECT value FROM carray(?))"
    found = rows(
        connection,
        f"SELECT rowid FROM surface_fts WHERE surface_fts MATCH ? {within} ORDER BY rowid LIMIT ?",
        (expression, *(() if allowed is None else (integers(allowed),)), limit),
    )
    return np.array([row for (row,) in found], np.int64)


def stale(connection: apsw.Connection, memories: Sequence[int]) -> list[int]:
    """Those of these memories whose row holds other words than their title and text; all of the index is read."""
    chosen = integers(memories)
    connection.execute(_BEGIN_ANEW)
    try:
        connection.execute(_ANEW, (chosen,))
        made = [row for (row,) in rows(connection, "SELECT rowid FROM temp.surface_anew ORDER BY rowid")]
        wanted, found = (_words(connection, table, made) for table in ("surface_anew_places", "surface_places"))
    finally:
        connection.execute(_END_ANEW)
    return [memory for memory in made if wanted[memory] != found[memory]]


def _words(connection: apsw.Connection, table: str, memories: Sequence[int]) -> Counter[int]:
    """By memory what stands for its words and their places, whatever their order in the index."""
    sums: Counter[int] = Counter()
    for word, memory, column, place in connection.execute(
        f"SELECT term, doc, col, offset FROM temp.{table} WHERE doc IN (SELECT value FROM carray(?))",
        (integers(memories),),
    ):
        sums[memory] += hash(word) * hash((column, place))
    return sums
