"""How many analysed tokens each memory has: in the title, the triggers, the path and each passage, in order.

The full-text table knows where words stand but not how long texts are. With both, inverted indexes answer from the file
and no stored text is read: see `read_model.file_words`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.pipeline.ports import Ids

Counts = NDArray[np.int64]

_STORED = ">u4"
"""Counts of passages as the file holds them: SQL writes the first byte first."""
LONGEST = 8_000
"""A word of so many characters has no more than the 32,768 bytes that FTS5 keeps of one."""
_OTHERS = re.compile("[\0\u180e\ufffe\uffff]")
"""What FTS5 takes for the end of a text or of a word, besides white space."""


class TokenCounts(NamedTuple):
    """The tokens of all memories, ascending by id."""

    memories: Ids
    fields: Counts
    """Of title, triggers and path, shape (3, memories)."""
    passages: Counts
    """How many passages each memory has."""
    of_passages: Counts
    """The tokens of all passages, by memory and order within it."""


class Counted(NamedTuple):
    """How many tokens a text has, and whether the full-text table may keep other words than these."""

    tokens: int
    rewritten: bool


def counted(text: str) -> Counted:
    """What is to be known of tokens joined by blanks.

    FTS5 folds capitals, splits at all white space and cuts long words. The analyser makes no such word. Of those that
    count as rewritten here, some would stay as they are.
    """
    count = text.count(" ") + 1 if text else 0
    if len(text) <= LONGEST and text.isascii() and text.isprintable() and "  " not in f" {text} ":
        return Counted(count, text != text.lower())  # as below, and sooner: blanks are all the white space that it has
    words = text.split()
    rewritten = (
        len(words) != count
        or text != text.casefold()
        or _OTHERS.search(text) is not None
        or (len(text) > LONGEST and max(map(len, words)) > LONGEST)
    )
    return Counted(count, rewritten)


def insert(txn: Transaction, memory_id: int, texts: Sequence[Counted]) -> None:
    """Adds the counts of a memory that has none: of title, triggers and path, then of each passage."""
    counts = [text.tokens for text in texts]
    txn.connection.execute(
        "INSERT INTO token_counts VALUES (?, ?, ?, ?, ?, ?)",
        (memory_id, *counts[:3], np.array(counts[3:], _STORED).tobytes(), any(text.rewritten for text in texts)),
    )


def load(connection: apsw.Connection) -> TokenCounts | None:
    """The counts of all memories; None when the full-text table holds other words for some than were stored."""
    found = rows(
        connection, "SELECT memory_id, title, triggers, path, passages, rewritten FROM token_counts ORDER BY 1"
    )
    if any(row[5] for row in found):
        return None
    numbers = np.array([row[:4] for row in found], np.int64).reshape(-1, 4).T
    blobs = [row[4] for row in found]
    return TokenCounts(
        numbers[0],
        numbers[1:],
        np.array([len(blob) // 4 for blob in blobs], np.int64),
        np.frombuffer(b"".join(blobs), _STORED).astype(np.int64),
    )
