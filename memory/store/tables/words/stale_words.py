"""Whether the full-text rows hold the words of the texts that are stored: no constraint and no check of SQLite tells.

Lengths are compared of all rows, words of as many as a bound allows: comparing one takes some microseconds. Beside
that the whole index is passed through, however few rows are compared, since it is ordered by words: up to half a second
per million words of the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import apsw
import numpy as np

from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables.words import surface, token_counts

MOST_WORDS = 500_000
"""So many words are compared unless all are wanted: about two seconds, beside passing through the index."""
NAMED = 10
"""So many rows are named."""
_FIELDS = ("title", "triggers", "path", "body")
_COUNTS = """
SELECT t.memory_id, n.title, n.triggers, n.path, n.passages, n.rewritten
FROM texts t LEFT JOIN token_counts n ON n.memory_id = t.memory_id ORDER BY 1
"""


class Compared(NamedTuple):
    """The memories whose full-text row holds other words than their texts, of so many `compared` of `memories`."""

    stale: list[int]
    compared: int
    memories: int

    @property
    def faults(self) -> list[str]:
        """What is wrong, one sentence each; at most `NAMED`."""
        return [
            f"the full-text row of memory {memory} holds other words than its text" for memory in self.stale[:NAMED]
        ]

    @property
    def remark(self) -> str:
        """That only some were compared, "" where all were."""
        if self.compared == self.memories:
            return ""
        return (
            f"the words of {self.compared:,} of {self.memories:,} full-text rows were compared, and the lengths of "
            "all: `speckit-memory doctor --repair` compares all words"
        )


def compared(connection: apsw.Connection, most: int | None = MOST_WORDS) -> Compared:
    """Compares the words of rows whose length is that of another text, then of others spread evenly, up to `most` words
    or all; memories without a row and rows of no memory are left to others.

    Rows of which the table may keep other words than were stored (`token_counts.counted`) are passed over. Counts that
    are wrong or missing keep no row from being compared.
    """
    lengths: dict[int, int] = {}
    suspects: list[int] = []
    kept = dict(connection.execute("SELECT id, sz FROM memory_fts_docsize"))
    for memory, *counts, rewritten in connection.execute(_COUNTS):
        if memory not in kept or (rewritten and most is not None):
            continue
        fields = _numbers(kept[memory])
        lengths[memory] = sum(fields)
        if fields != _counted(counts):
            suspects.append(memory)
    chosen = sorted(_within(suspects, lengths, most))
    return among(connection, chosen, whole=len(chosen) == len(kept))._replace(memories=len(lengths))


def among(connection: apsw.Connection, memories: Sequence[int], *, whole: bool = False) -> Compared:
    """Compares the words of the rows of these memories, all that have rows where that is the `whole`."""
    words = _words(connection, memories, whole=whole) if memories else {}
    stale = {memory for memory, total in _expected(connection, memories) if words.get(memory, 0) != total}
    stale.update(surface.stale(connection, memories) if memories else ())
    return Compared(sorted(stale), len(memories), len(memories))


def _counted(counts: Sequence[object]) -> list[int] | None:
    """The lengths of the fields as they were counted; None for what nobody counted or a damaged store holds."""
    *fields, passages = counts
    if not isinstance(passages, bytes):
        return None
    return [
        *(each for each in fields if isinstance(each, int)),
        int(np.frombuffer(passages[: len(passages) // 4 * 4], ">u4").sum()),
    ]


def _within(suspects: Sequence[int], lengths: Mapping[int, int], most: int | None) -> set[int]:
    """The suspects and, spread evenly, others, as far as `most` words go."""
    if most is None or sum(lengths.values()) <= most:
        return set(lengths)
    left = most
    chosen: set[int] = set()
    others = list(lengths)
    step = -(-sum(lengths.values()) // most)
    for memory in (*suspects, *others[::step]):
        left -= 0 if memory in chosen else lengths[memory]
        if left < 0 and chosen:
            break
        chosen.add(memory)
    return chosen


def _numbers(blob: object) -> list[int]:
    """The numbers that FTS5 keeps of a row: big-endian, seven bits a byte; the last has the first bit clear."""
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


def _words(connection: apsw.Connection, memories: Sequence[int], *, whole: bool) -> dict[int, int]:
    """What stands for the words of each row, whatever their order in the index."""
    within = "" if whole else "WHERE doc IN (SELECT value FROM carray(?))"
    found: defaultdict[int, int] = defaultdict(int)
    for word, memory, field, place in connection.execute(
        f"SELECT term, doc, col, offset FROM temp.memory_word_places {within}", () if whole else (integers(memories),)
    ):
        found[memory] += _stands_for(word, field, place)
    return found


def _expected(connection: apsw.Connection, memories: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The same of the texts of each memory."""
    for memory in memories:
        fields = rows(
            connection, "SELECT title_tokens, trigger_tokens, path_tokens FROM texts WHERE memory_id = ?", (memory,)
        )
        passages = rows(connection, "SELECT tokens FROM chunks WHERE memory_id = ? ORDER BY ordinal", (memory,))
        every = [*(fields[0] if fields else ()), *(text for (text,) in passages)]
        if fields and all(isinstance(text, str) and not token_counts.counted(text).rewritten for text in every):
            texts = (*every[:3], " ".join(every[3:]))
            yield memory, sum(_sum(field, text.split()) for field, text in zip(_FIELDS, texts, strict=True))


def _sum(field: str, words: Iterable[str]) -> int:
    return sum(_stands_for(word, field, place) for place, word in enumerate(words))


def _stands_for(word: str, field: str, place: int) -> int:
    """A product, so that words that change their places change the sum: hashes of a triple nearly add up."""
    return hash(word) * hash((field, place))
