"""The full-text table: one row per memory, searched with FTS5's BM25 (feature C2).

The columns hold analysed tokens joined by blanks. The table's tokeniser splits at blanks only, so that `c++`, `req-006`
and pairs of CJK characters stay the tokens that the analyser made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integer_lists, integers, rows, texts
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from speckit_memory.pipeline.ports import Column, Ids

# Field numbers are positions in the read model's order: title, triggers, path, body.
_PLACES = """
SELECT t.rowid, p.doc, CASE p.col WHEN 'body' THEN 3 WHEN 'title' THEN 0 WHEN 'triggers' THEN 1 ELSE 2 END, p.offset
FROM carray(?) AS t CROSS JOIN temp.memory_word_places AS p ON p.term = t.value
"""

_TOKENS = """
SELECT memory_id, title_tokens, trigger_tokens, path_tokens, tokens FROM texts
WHERE memory_id IN (SELECT value FROM carray(?)) ORDER BY memory_id
"""


def insert(txn: Transaction, memories: Iterable[tuple[int, str, str, str, str]]) -> None:
    """Adds the rows of memories that have none: id, title, triggers, path and body, as tokens joined by blanks."""
    txn.connection.executemany(
        "INSERT INTO memory_fts (rowid, title, triggers, path, body) VALUES (?, ?, ?, ?, ?)", memories
    )


def delete(txn: Transaction, memory_id: int) -> None:
    """Removes the row of a memory."""
    txn.connection.execute("DELETE FROM memory_fts WHERE rowid = ?", (memory_id,))


def fill(txn: Transaction, memory_ids: Iterable[int]) -> int:
    """Adds rows for memories that have none, from their stored tokens; returns the number of rows."""
    count = 0
    for chosen in integer_lists(memory_ids):
        made = []
        for memory_id, title, triggers, path, tokens in rows(txn.connection, _TOKENS, (chosen,)):
            with suppress(ValueError):  # tokens that cannot be read are not guessed
                made.append((memory_id, title, triggers, path, " ".join(unpack_tokens(tokens))))
        insert(txn, made)
        count += len(made)
    return count


def match(
    connection: Connection,
    tokens: Sequence[str],
    weights: tuple[float, float, float, float],
    limit: int,
    allowed: Ids | None = None,
) -> tuple[Ids, Column]:
    """Finds memories that contain any of the tokens.

    Args:
        connection: A connection to the store.
        tokens: Analysed tokens of the query.
        weights: BM25 weights of title, triggers, path and body.
        limit: Maximum number of memories.
        allowed: Restricts the search to these memories, before the limit applies; None for all.

    Returns:
        Ids and BM25 scores (float64, positive), by score descending, then id ascending.
    """
    # FTS5 reads an expression up to the first NUL, and no stored token contains one.
    expression = " OR ".join(_quoted(token) for token in dict.fromkeys(tokens) if "\0" not in token)
    if not expression:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    # The unary plus makes the restriction a test on each match; as an FTS5 constraint it would run one search per id.
    # bm25() is negative, smaller for better matches (SQLite, FTS5); the body is the first column of the table.
    title, triggers, path, body = weights
    within = "" if allowed is None else "AND +rowid IN (SELECT value FROM carray(?))"
    found = rows(
        connection,
        f"SELECT rowid, -bm25(memory_fts, ?, ?, ?, ?) AS score FROM memory_fts WHERE memory_fts MATCH ? {within} "
        "ORDER BY score DESC, rowid LIMIT ?",
        (body, title, triggers, path, expression, *(() if allowed is None else (integers(allowed),)), limit),
    )
    return np.array([row[0] for row in found], np.int64), np.array([row[1] for row in found], np.float64)


def places(connection: Connection, tokens: Sequence[str]) -> dict[str, tuple[Ids, Ids, Ids]]:
    """All occurrences of each of these distinct analysed tokens, ascending: memory ids, field numbers (in `FIELDS`) and
    token offsets.

    The tokens must have the form that the table stores: see `token_counts.insert`.
    """
    stored = [token for token in tokens if token and _is_storable(token)]
    found = connection.execute(_PLACES, (texts(stored),)) if stored else ()
    # table: (occurrences, 4) int64; a flat iterator avoids a list of tuples
    table = np.fromiter(chain.from_iterable(found), np.int64).reshape(-1, 4)
    bounds = table[:, 0].searchsorted(np.arange(1, len(stored) + 2)).tolist()
    of_token = {
        token: (table[start:end, 1], table[start:end, 2], table[start:end, 3])
        for token, (start, end) in zip(stored, pairwise(bounds), strict=True)
    }
    none = np.empty(0, np.int64)
    return {token: of_token.get(token, (none, none, none)) for token in tokens}


def _is_storable(token: str) -> bool:
    """Whether UTF-8 can encode a token and no NUL ends it: no file contains another one."""
    try:
        token.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in token


def words(connection: Connection) -> Iterator[str]:
    """Iterates over the distinct tokens of all memories."""
    return (word for (word,) in connection.execute("SELECT term FROM temp.memory_words"))


def _quoted(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'
