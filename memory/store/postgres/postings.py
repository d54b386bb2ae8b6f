"""The words of memories in PostgreSQL: a row for each word of a memory, with its places in both full-text tables.

A place is `offset << FIELD | field`. Ascending places are stored as varints of their differences. The row of the empty
word holds the lengths of the fields, added up; every memory with words has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.splitting import ANALYSED, WRITTEN, split
from speckit_memory.memory.store.postgres.adapters import Blobs, Integers, Texts

Numbers = NDArray[np.int64]
Fields = Sequence[Sequence[str]]
"""The words of each field."""
FIELD = 2
"""Bits of a field in a place."""
FIELDS = {ANALYSED: ("title", "triggers", "path", "body"), WRITTEN: ("title", "body")}
"""The fields of each full-text table; a place has their number here."""
COLUMNS = {ANALYSED: "analysed", WRITTEN: "written"}
"""The columns of places."""
_MEMORY = 32
"""Bits of the number of a memory, above which is that of a word."""
_INSERT = (
    "INSERT INTO postings (term, memory_id, analysed, written) "
    "SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[])"
)
_INSERT_LENGTHS = (
    "INSERT INTO postings (term, memory_id, words, analysed, written) "
    "SELECT '', * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])"
)


def field_and_offset(place: int) -> tuple[int, int]:
    """The parts of a place."""
    return place & (1 << FIELD) - 1, place >> FIELD


def pack(numbers: Numbers, sizes: Numbers) -> list[bytes]:
    """The stored form of lists of ascending numbers, given one after the other with their sizes."""
    ends = np.cumsum(sizes)
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
    numbers, sizes = unpack_joined(packed)
    ends = np.cumsum(sizes).tolist()
    for begin, end in pairwise((0, *ends)):
        yield numbers[begin:end].tolist()


def unpack_joined(packed: Sequence[bytes]) -> tuple[Numbers, Numbers]:
    """The numbers of all lists that `pack` stored, one list after the other, and the sizes of the lists."""
    data = np.frombuffer(b"".join(packed), np.uint8)
    last = np.flatnonzero(data < 0x80) + 1
    start = np.append(0, last)[:-1]
    shifts = 7 * (np.arange(len(data)) - np.repeat(start, last - start))
    total = np.append(
        0, np.cumsum(np.add.reduceat((data & 0x7F).astype(np.int64) << shifts, start) if len(data) else [])
    ).astype(np.int64)
    lengths = np.fromiter(map(len, packed), np.int64, len(packed))
    ends = np.searchsorted(last, np.cumsum(lengths), side="right")
    sizes = np.diff(ends, prepend=0)
    return total[1:] - np.repeat(total[ends - sizes], sizes), sizes


class PostingChanges:
    """Changes of words that were not sent yet, since the words of both full-text tables of a memory share their rows.

    They are sent before anything reads words and before a transaction or a part of it ends.
    """

    _gone: dict[int, set[int]]
    _come: dict[int, dict[int, list[list[str]]]]

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all changes: they were undone."""
        self._gone, self._come = {}, {}

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
        if come := {memory: fields for memory, fields in come.items() if fields}:
            yield _INSERT_LENGTHS, _lengths(come)
            yield _INSERT, _words(come)


def _lengths(come: Mapping[int, Mapping[int, Fields]]) -> list[Any]:
    """Memories, the numbers of their analysed words, and the lengths of their fields, a list for each column."""
    columns = []
    for kind in COLUMNS:
        lengths = np.array([[*map(len, fields[kind])] for fields in come.values() if kind in fields], np.int64)
        ends = np.cumsum(lengths.reshape(-1, len(FIELDS[kind])), axis=1)
        packed = iter(pack(ends.ravel(), np.full(len(ends), len(FIELDS[kind]))))
        columns.append(Blobs(next(packed) if kind in fields else None for fields in come.values()))
    words = (sum(map(len, fields[ANALYSED])) if ANALYSED in fields else None for fields in come.values())
    return [Integers(come), Integers(words), *columns]


def _words(come: Mapping[int, Mapping[int, Fields]]) -> list[Any]:
    """Words, memories, and places of each kind, a list for each column.

    They are ordered by words, so that a long list goes through the index of words once.
    """
    parts = [
        [
            (memory, field, words)
            for memory, fields in enumerate(come.values())
            for field, words in enumerate(fields.get(kind, ()))
        ]
        for kind in COLUMNS
    ]
    terms = sorted(set(chain.from_iterable(words for of_kind in parts for _, _, words in of_kind)))
    numbers = dict(zip(terms, count()))
    keyed = [_by_word(of_kind, numbers) for of_kind in parts]
    rows = np.sort(np.concatenate([keys for keys, _ in keyed]), kind="stable")
    rows = rows[np.diff(rows, prepend=-1) > 0]
    columns = [np.full(len(rows), None, object) for _ in keyed]
    for column, (keys, packed) in zip(columns, keyed, strict=True):
        column[rows.searchsorted(keys)] = packed
    memories = np.fromiter(come, np.int64, len(come))
    return [
        Texts(map(terms.__getitem__, (rows >> _MEMORY).tolist())),
        Integers(memories[rows & (1 << _MEMORY) - 1].tolist()),
        *(Blobs(column.tolist()) for column in columns),
    ]


def _by_word(
    parts: Sequence[tuple[int, int, Sequence[str]]], numbers: Mapping[str, int]
) -> tuple[Numbers, list[bytes]]:
    """The distinct words of memories, ascending, each as the number of the word above that of the memory; and the
    places of each.

    Args:
        parts: A memory, a field, and the words of the field.
        numbers: The numbers of words.
    """
    table = np.array([(memory, field, len(words)) for memory, field, words in parts], np.int64).reshape(-1, 3)
    memories, fields, lengths = table.T
    numbered = map(numbers.__getitem__, chain.from_iterable(words for _, _, words in parts))
    words = np.fromiter(numbered, np.int64, lengths.sum())
    offsets = np.arange(len(words)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    keys = words << _MEMORY | np.repeat(memories, lengths)
    places = offsets << FIELD | np.repeat(fields, lengths)
    order = np.lexsort((places, keys))
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[first], pack(places[order], np.diff(first, append=len(keys)))
