"""Checks that full-text rows hold the words of the stored texts, which no constraint or check of SQLite does.

Lengths are compared for all rows, words for as many rows as a limit allows, at some microseconds per word. In addition,
the whole index is scanned, however few rows are compared, since it is ordered by words: up to half a second per million
words in the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from speckit_memory.memory.store.tables.words import surface, token_counts

MOST_WORDS = 500_000
"""Default limit of words to compare, which takes about two seconds in addition to scanning the index."""
NAMED = 10
"""Maximum number of rows named in messages."""
_FIELDS = ("title", "triggers", "path", "body")
_COUNTS = """
SELECT t.memory_id, n.title, n.triggers, n.path, n.passages, n.rewritten
FROM texts t LEFT JOIN token_counts n ON n.memory_id = t.memory_id ORDER BY 1
"""


class FtsDrift(NamedTuple):
    """The `stale` memories, whose full-text row differs from their texts, and the numbers of compared and of all
    memories."""

    stale: list[int]
    compared: int
    memories: int

    @property
    def faults(self) -> list[str]:
        """The problems, one sentence each; at most `NAMED`."""
        return [
            f"the full-text row of memory {memory} holds other words than its text" for memory in self.stale[:NAMED]
        ]

    @property
    def remark(self) -> str:
        """A note that only some rows were compared; "" if all were."""
        if self.compared == self.memories:
            return ""
        return (
            f"the words of {self.compared:,} of {self.memories:,} full-text rows were compared, and the lengths of "
            "all: `speckit-memory doctor --repair` compares all words"
        )


def compare_words(connection: Connection, most: int | None = MOST_WORDS) -> FtsDrift:
    """Compares the words of rows of unexpected length, then of an even sample of the others, up to `most` words (None:
    all). Memories without a row and rows without a memory are left to other checks.

    With a limit, rows whose words FTS5 may have rewritten (`token_counts.count_tokens`) are skipped. Rows with wrong or
    missing counts are compared too.
    """
    # FTS5 keeps the number of tokens of each column in its docsize table, which is cheap to compare for all rows.
    lengths: dict[int, int] = {}
    suspects: list[int] = []
    kept = dict(connection.execute("SELECT id, sz FROM memory_fts_docsize"))
    for memory, *counts, rewritten in connection.execute(_COUNTS):
        if memory not in kept or (rewritten and most is not None):
            continue
        body, *short = _numbers(kept[memory]) or [0]
        fields = [*short, body]
        lengths[memory] = sum(fields)
        if fields != _stored_counts(counts):
            suspects.append(memory)
    chosen = sorted(_within(suspects, lengths, most))
    return among(connection, chosen, whole=len(chosen) == len(kept))._replace(memories=len(lengths))


def among(connection: Connection, memories: Sequence[int], *, whole: bool = False) -> FtsDrift:
    """Compares the words of the rows of these memories; `whole` says that these are all rows of the table."""
    words = _words(connection, memories, whole=whole) if memories else {}
    stale = {memory for memory, total in _expected(connection, memories) if words.get(memory, 0) != total}
    stale.update(surface.stale(connection, memories) if memories else ())
    return FtsDrift(sorted(stale), len(memories), len(memories))


def _stored_counts(counts: Sequence[object]) -> list[int] | None:
    """The stored token counts of the fields; None if they are missing or damaged."""
    *fields, passages = counts
    if not isinstance(passages, bytes):
        return None
    return [
        *(each for each in fields if isinstance(each, int)),
        int(np.frombuffer(passages[: len(passages) // 4 * 4], ">u4").sum()),
    ]


def _within(suspects: Sequence[int], lengths: Mapping[int, int], most: int | None) -> set[int]:
    """The suspects and an even sample of the other memories, up to `most` words; all if they have no more."""
    if most is None or sum(lengths.values()) <= most:
        return set(lengths)
    left = most
    chosen: set[int] = set()
    others = list(lengths)
    # ceil(words / most): every step-th of the other memories
    step = -(-sum(lengths.values()) // most)
    for memory in (*suspects, *others[::step]):
        left -= 0 if memory in chosen else lengths[memory]
        if left < 0 and chosen:
            break
        chosen.add(memory)
    return chosen


def _numbers(blob: object) -> list[int]:
    """Decodes FTS5's column sizes of a row: big-endian varints, seven bits a byte, the high bit clear in the last."""
    found: list[int] = []
    number = 0
    if not isinstance(blob, bytes):
        return found
    for byte in blob:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(number)
            number = 0
    return found


def _words(connection: Connection, memories: Sequence[int], *, whole: bool) -> dict[int, int]:
    """A checksum of the words of each row that does not depend on the order of the index."""
    within = "" if whole else "WHERE doc IN (SELECT value FROM carray(?))"
    found: defaultdict[int, int] = defaultdict(int)
    for word, memory, field, place in connection.execute(
        f"SELECT term, doc, col, offset FROM temp.memory_word_places {within}", () if whole else (integers(memories),)
    ):
        found[memory] += _stands_for(word, field, place)
    return found


def _expected(connection: Connection, memories: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The same checksum computed from the texts of each memory."""
    for memory in memories:
        chosen = "SELECT title_tokens, trigger_tokens, path_tokens, tokens FROM texts WHERE memory_id = ?"
        every = [
            text for *short, tokens in rows(connection, chosen, (memory,)) for text in (*short, *_passages(tokens))
        ]
        if every and all(isinstance(text, str) and not token_counts.count_tokens(text).rewritten for text in every):
            # the passages of a memory are one field of its full-text row
            texts = (*every[:3], " ".join(every[3:]))
            yield memory, sum(_sum(field, text.split()) for field, text in zip(_FIELDS, texts, strict=True))


def _passages(stored: bytes) -> list[str | None]:
    """The tokens of each passage; a None where they cannot be read."""
    try:
        return [*unpack_tokens(stored)]
    except ValueError:
        return [None]


def _sum(field: str, words: Iterable[str]) -> int:
    return sum(_stands_for(word, field, place) for place, word in enumerate(words))


def _stands_for(word: str, field: str, place: int) -> int:
    """The term of one word in the checksum. A product, so that swapping two words changes the sum; hashes of triples
    are so regular that their sum could stay the same."""
    return hash(word) * hash((field, place))
