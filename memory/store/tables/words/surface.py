"""The full-text table of words as written: one row per memory, with its title and text (feature C2).

The indexes of analysed tokens hold stems and no stop words. This table finds memories by their exact words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integer_lists, integers, rows
from speckit_memory.memory.store.file.schema.packing import WORDS_AS_WRITTEN
from speckit_memory.pipeline.ports import Ids

_STORED = "(rowid, title, body) SELECT m.id, m.title, b.body FROM memories m JOIN bodies b ON b.memory_id = m.id"
"""SQL for the contents of the rows."""
_FILL = f"INSERT INTO surface_fts {_STORED} WHERE m.id IN (SELECT value FROM carray(?)) ORDER BY m.id"
# The expected rows are tokenised into a temporary table, so that both sides pass through the same tokeniser.
_BEGIN_ANEW = f"""
CREATE VIRTUAL TABLE temp.surface_anew USING fts5 ({WORDS_AS_WRITTEN});
CREATE VIRTUAL TABLE temp.surface_anew_places USING fts5vocab (temp, surface_anew, instance);
CREATE VIRTUAL TABLE temp.surface_places USING fts5vocab (main, surface_fts, instance);
"""
_ANEW = f"""
INSERT INTO temp.surface_anew {_STORED}
WHERE m.id IN (SELECT value FROM carray(?)) AND typeof(m.title) = 'text' AND typeof(b.body) = 'text'
"""
_END_ANEW = "DROP TABLE temp.surface_anew_places; DROP TABLE temp.surface_places; DROP TABLE temp.surface_anew;"
_HOLDING = "SELECT rowid FROM surface_fts WHERE surface_fts MATCH ? ORDER BY rowid LIMIT ?"
_PREFETCH = "SELECT rowid FROM surface_fts WHERE surface_fts MATCH ? LIMIT 0"
_UNQUOTABLE = re.compile('["\\0\ud800-\udfff]+')
"""Characters that end an FTS5 string or occur in no file. The tokeniser treats them as separators."""


def insert(txn: Transaction, memories: Iterable[tuple[int, str, str]]) -> None:
    """Adds the rows of memories that have none: id, title and text."""
    txn.connection.executemany("INSERT INTO surface_fts (rowid, title, body) VALUES (?, ?, ?)", memories)


def fill(txn: Transaction, memory_ids: Sequence[int]) -> int:
    """Adds rows for memories that have none, from their stored titles and texts; returns the number of ids."""
    for chosen in integer_lists(memory_ids):
        txn.connection.execute(_FILL, (chosen,))
    return len(memory_ids)


def delete(txn: Transaction, memory_id: int) -> None:
    """Removes the row of a memory."""
    txn.connection.execute("DELETE FROM surface_fts WHERE rowid = ?", (memory_id,))


def quote_phrase(phrase: str) -> str:
    """A phrase as a string of an FTS5 expression."""
    return f'"{_UNQUOTABLE.sub(" ", phrase)}"'


def prefetch(connection: Connection, words: Sequence[str]) -> None:
    """Has an engine without FTS5 read these words, which it keeps until its transaction ends; FTS5 reads nothing."""
    rows(connection, _PREFETCH, (" OR ".join(map(quote_phrase, words)) or '""',))


def holding(connection: Connection, phrases: Sequence[str], limit: int) -> Ids:
    """The memories that contain every phrase, ignoring case and separators between words, ascending.

    If there are more than `limit`, any `limit` of them. Phrases without words are ignored; nothing is found if all are.
    """
    expression = " ".join(map(quote_phrase, phrases)) or '""'
    return np.array([row for (row,) in rows(connection, _HOLDING, (expression, limit))], np.int64)


def stale(connection: Connection, memories: Sequence[int]) -> list[int]:
    """The memories among these whose row differs from their title and text; reads the whole index."""
    chosen = integers(memories)
    connection.execute(_BEGIN_ANEW)
    try:
        connection.execute(_ANEW, (chosen,))
        made = [row for (row,) in rows(connection, "SELECT rowid FROM temp.surface_anew ORDER BY rowid")]
        wanted, found = (_words(connection, table, made) for table in ("surface_anew_places", "surface_places"))
    finally:
        connection.execute(_END_ANEW)
    return [memory for memory in made if wanted[memory] != found[memory]]


def _words(connection: Connection, table: str, memories: Sequence[int]) -> Counter[int]:
    """Per memory, a checksum of its words and their positions that does not depend on the order of the index."""
    sums: Counter[int] = Counter()
    for word, memory, column, place in connection.execute(
        f"SELECT term, doc, col, offset FROM temp.{table} WHERE doc IN (SELECT value FROM carray(?))",
        (integers(memories),),
    ):
        sums[memory] += hash(word) * hash((column, place))
    return sums
