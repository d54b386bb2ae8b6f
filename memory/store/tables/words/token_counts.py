"""Number of analysed tokens of each memory: in the title, the triggers, the path and each passage, in order.

The full-text table holds the positions of words but not the lengths of texts. With both, inverted indexes are served
from the file without reading stored texts: see `read_model.words.fts_index`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.pipeline.ports import Ids

Counts = NDArray[np.int64]

_STORED = ">u4"
"""Stored format of the counts of passages: big-endian, as the SQL of the migration writes them."""
LONGEST = 8_000
"""A word of at most this number of characters fits in the 32,768 bytes to which FTS5 cuts words."""
_OTHERS = re.compile("[\0\u180e\ufffe\uffff]")
"""Characters other than white space that end a text or word for FTS5."""


class TokenCounts(NamedTuple):
    """Token counts of all memories, ascending by id. n is the number of memories, p that of all passages."""

    memories: Ids
    fields: Counts
    """Tokens of title, triggers and path, shape (3, n)."""
    passages: Counts
    """Number of passages of each memory, shape (n,)."""
    of_passages: Counts
    """Tokens of each passage, by memory and document order, shape (p,)."""


class TokenCount(NamedTuple):
    """The number of tokens of a text, and whether FTS5 may store other words than these."""

    tokens: int
    rewritten: bool


def count_tokens(text: str) -> TokenCount:
    """Counts tokens joined by blanks.

    FTS5 folds capitals, splits at any white space and cuts long words. The analyser makes no such words; `rewritten` is
    a conservative test and may be true for words that FTS5 stores unchanged.
    """
    # the printable ASCII test covers nearly all texts and is much faster than the general one below
    count = text.count(" ") + 1 if text else 0
    if len(text) <= LONGEST and text.isascii() and text.isprintable() and "  " not in f" {text} ":
        return TokenCount(count, text != text.lower())  # a faster path: the only white space is single blanks
    words = text.split()
    rewritten = (
        len(words) != count
        or text != text.casefold()
        or _OTHERS.search(text) is not None
        or (len(text) > LONGEST and max(map(len, words)) > LONGEST)
    )
    return TokenCount(count, rewritten)


def insert(txn: Transaction, memories: Iterable[tuple[int, Sequence[TokenCount]]]) -> None:
    """Adds the counts of memories that have none: of title, triggers and path, then of each passage."""
    rows_of_counts = []
    for memory_id, texts in memories:
        counts = [text.tokens for text in texts]
        of_passages = np.array(counts[3:], _STORED).tobytes()
        rows_of_counts.append((memory_id, *counts[:3], of_passages, any(text.rewritten for text in texts)))
    txn.connection.executemany("INSERT INTO token_counts VALUES (?, ?, ?, ?, ?, ?)", rows_of_counts)


def load(connection: Connection) -> TokenCounts | None:
    """The counts of all memories; None when the full-text table may hold rewritten words of some memory."""
    found = rows(
        connection, "SELECT memory_id, title, triggers, path, passages, rewritten FROM token_counts ORDER BY 1"
    )
    if any(row[5] for row in found):
        return None
    # numbers: (4, n) int64, rows: memory id, title, triggers, path
    numbers = np.array([row[:4] for row in found], np.int64).reshape(-1, 4).T
    blobs = [row[4] for row in found]
    return TokenCounts(
        numbers[0],
        numbers[1:],
        np.array([len(blob) // 4 for blob in blobs], np.int64),
        np.frombuffer(b"".join(blobs), _STORED).astype(np.int64),
    )
