"""The full-text table: one row per memory, searched with FTS5's BM25 (feature C2).

The columns hold analysed tokens joined by blanks, and the table's tokeniser splits at blanks alone, so that `c++`,
`req-006` and pairs of CJK characters are found as the analyser wrote them.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import numpy as np

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.queries import integers, rows
from speckit_memory.pipeline.ports import Column, Ids


def insert(txn: Transaction, memory_id: int, title: str, triggers: str, path: str, body: bytes | bytearray) -> None:
    """Adds the row of a memory that has none; the four texts are tokens joined by blanks, the long one in UTF-8."""
    txn.connection.execute(
        "INSERT INTO memory_fts (rowid, title, triggers, path, body) VALUES (?, ?, ?, ?, ?)",
        (memory_id, title, triggers, path, body),
    )


def delete(txn: Transaction, memory_id: int) -> None:
    """Removes the row of a memory."""
    txn.connection.execute("DELETE FROM memory_fts WHERE rowid = ?", (memory_id,))


def match(
    connection: apsw.Connection,
    tokens: Sequence[str],
    weights: tuple[float, float, float, float],
    limit: int,
    allowed: Ids | None = None,
) -> tuple[Ids, Column]:
    """Memories that hold any of the analysed tokens and their BM25 scores, score descending, then id ascending.

    Weights are those of title, triggers, path and body. `allowed` restricts the search to these memories before the
    limit applies. Scores are positive.
    """
    # FTS5 reads an expression up to the first NUL, and no stored token has one.
    expression = " OR ".join(_quoted(token) for token in dict.fromkeys(tokens) if "\0" not in token)
    if not expression:
        return np.empty(0, np.int64), np.empty(0, np.float64)
    # The unary plus makes the restriction a test on each match; as a constraint it would run the search once per id.
    within = "" if allowed is None else "AND +rowid IN (SELECT value FROM carray(?))"
    found = rows(
        connection,
        f"SELECT rowid, -bm25(memory_fts, ?, ?, ?, ?) AS score FROM memory_fts WHERE memory_fts MATCH ? {within} "
        "ORDER BY score DESC, rowid LIMIT ?",
        (*weights, expression, *(() if allowed is None else (integers(allowed),)), limit),
    )
    return np.array([row[0] for row in found], np.int64), np.array([row[1] for row in found], np.float64)


def _quoted(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'
