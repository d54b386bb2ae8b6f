"""The words of memories in PostgreSQL: a row for each word of a memory, with its places in both full-text tables.

A place is `offset << FIELD | field`. Ascending places are stored as varints of their differences. The row of the empty
word holds the lengths of the fields, added up; every memory with words has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from speckit_memory.memory.store.file.splitting import ANALYSED, WRITTEN, split
from speckit_memory.memory.store.postgres.adapters import Blobs, Integers, Texts

FIELD = 2
"""Bits of a field in a place."""
FIELDS = {ANALYSED: ("title", "triggers", "path", "body"), WRITTEN: ("title", "body")}
"""The fields of each full-text table; a place has their number here."""
COLUMNS = {ANALYSED: "analysed", WRITTEN: "written"}
"""The columns of places."""
_INSERT = (
    "INSERT INTO postings (term, memory_id, words, analysed, written) "
    "SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])"
)


def field_and_offset(place: int) -> tuple[int, int]:
    """The parts of a place."""
    return place & (1 << FIELD) - 1, place >> FIELD


def pack(lists: Sequence[Sequence[int]]) -> list[bytes]:
    """The stored form of each list of ascending numbers."""
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    ends = np.cumsum(sizes)
    numbers = np.fromiter(chain.from_iterable(lists), np.int64)
    gaps = np.diff(numbers, prepend=0)
    first = (ends - sizes)[sizes > 0]
    gaps[first] = numbers[first]
    widths = np.ones(len(gaps), np.int64)
    for group in range(1, 9):
        widths += gaps >> 7 * group > 0
    stops = np.append(0, np.cumsum(widths))
    data = np.zeros(stops[-1], np.uint8)
    for group in range(int(widths.max(initial=0))):
        having = widths > group
        more = (widths > group + 1).astype(np.int64) << 7
        data[stops[:-1][having] + group] = (gaps >> 7 * group & 0x7F | more)[having]
    packed = data.tobytes()
    return [packed[start:end] for start, end in pairwise(stops[np.append(0, ends)].tolist())]


def unpack(packed: Sequence[bytes]) -> Iterator[list[int]]:
    """The lists that `pack` stored."""
    data = np.frombuffer(b"".join(packed), np.uint8)
    last = np.flatnonzero(data < 0x80) + 1
    start = np.append(0, last)[:-1]
    shifts = 7 * (np.arange(len(data)) - np.repeat(start, last - start))
    total = np.append(
        0, np.cumsum(np.add.reduceat((data & 0x7F).astype(np.int64) << shifts, start) if len(data) else [])
    )
    ends = np.searchsorted(last, np.cumsum([len(each) for each in packed]), side="right")
    for begin, end in pairwise((0, *ends.tolist())):
        yield (total[begin + 1 : end + 1] - total[begin]).astype(np.int64).tolist()


class PostingChanges:
    """Changes of words that were not sent yet, since the words of both full-text tables of a memory share their rows.

    They are sent before anything reads words and before a transaction or a part of it ends.
    """

    def __init__(self) -> None:
        self._gone: dict[int, set[int]] = {}
        self._come: dict[int, dict[int, list[list[str]]]] = {}

    def clear(self) -> None:
        """Forgets all changes: they were undone."""
        self.__init__()  # type: ignore[misc]

    def add(self, kind: int, memory: int, texts: Mapping[str, str]) -> None:
        """Adds the words of the texts of a memory, by field."""
        self._come.setdefault(memory, {})[kind] = [split(kind, texts.get(field, "")) for field in FIELDS[kind]]

    def delete(self, kind: int, memory: int) -> None:
        """Deletes the words of a memory."""
        if self._come.get(memory, {}).pop(kind, None) is None:
            self._gone.setdefault(memory, set()).add(kind)

    def statements(self) -> Iterator[tuple[str, list[Any]]]:
        """The statements that make the changes, which are then forgotten."""
        gone, come = self._gone, self._come
        self.clear()
        if whole := [memory for memory, kinds in gone.items() if len(kinds) == len(COLUMNS)]:
            yield "DELETE FROM postings WHERE memory_id = ANY ($1)", [Integers(whole)]
        for kind, column in COLUMNS.items():
            if part := [memory for memory, kinds in gone.items() if kinds == {kind}]:
                other = COLUMNS[WRITTEN if kind == ANALYSED else ANALYSED]
                of_these = f"memory_id = ANY ($1) AND {column} IS NOT NULL"
                yield f"DELETE FROM postings WHERE {of_these} AND {other} IS NULL", [Integers(part)]
                lengths = ", words = NULL" if kind == ANALYSED else ""
                yield f"UPDATE postings SET {column} = NULL{lengths} WHERE {of_these}", [Integers(part)]
        if rows := sorted(row for memory, fields in come.items() if fields for row in _rows(memory, fields)):
            terms, memories, words = zip(*(row[:3] for row in rows), strict=True)
            columns = [Blobs(_packed([row[3 + kind] for row in rows])) for kind in COLUMNS]
            yield _INSERT, [Texts(terms), Integers(memories), Integers(words), *columns]


def _rows(memory: int, fields: Mapping[int, list[list[str]]]) -> Iterator[tuple[Any, ...]]:
    """The rows of a memory: word, memory, number of all words, and places of each kind."""
    of_word: dict[str, list[list[int] | None]] = {}
    for kind, of_kind in fields.items():
        for field, words in enumerate(of_kind):
            for place, word in enumerate(words):
                found = of_word.setdefault(word, [None, None])
                places = found[kind]
                if places is None:
                    places = found[kind] = []
                places.append(place << FIELD | field)
    ends = {kind: list(accumulate(map(len, of_kind))) for kind, of_kind in fields.items()}
    yield "", memory, ends[ANALYSED][-1] if ANALYSED in ends else None, ends.get(ANALYSED), ends.get(WRITTEN)
    for word, (analysed, written) in of_word.items():
        yield word, memory, None, analysed and sorted(analysed), written and sorted(written)


def _packed(lists: Sequence[list[int] | None]) -> list[bytes | None]:
    """The stored forms of the lists that there are."""
    packed = iter(pack([each for each in lists if each is not None]))
    return [None if each is None else next(packed) for each in lists]
