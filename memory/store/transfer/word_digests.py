"""Digests of the words in the full-text indexes of a store, by which stores of any engine are compared.

A digest is a sum over all words at their places. So each engine reads them once, in the order in which it has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.transfer.row_copy import TableDigest

Numbers = NDArray[np.int64]
BLOCK = 20_000
"""Rows of words, or places, that are added at a time."""
TERMS = 100
"""Terms of SQLite's index that are read at a time, each with all its places."""
_FIELDS = {"memory_fts": ("title", "triggers", "path", "body"), "surface_fts": ("title", "body")}
"""The full-text indexes, and the fields of each. A place is `offset << 2 | field`, by the number of the field here."""
_POSTINGS = "SELECT term, memory_id, analysed, written FROM postings WHERE term <> ''"


def word_digests(connection: Connection) -> list[TableDigest]:
    """The digest of the words of each full-text index, inside a read transaction."""
    sums = {name: _WordSum() for name in _FIELDS}
    if isinstance(connection, Connection):
        for name, total in sums.items():
            _add_vocabulary(total, connection, name)
    else:
        _add_postings(sums["memory_fts"], sums["surface_fts"], connection)
    return [TableDigest(name, total.count, total.digest()) for name, total in sums.items()]


class _WordSum:
    """The sum, modulo 2¹²⁸, of a hash of each word with its memory and place."""

    def __init__(self) -> None:
        self.count = 0
        self._halves = np.zeros(2, np.uint64)

    def add(self, terms: Sequence[str], sizes: Sequence[int] | Numbers, memories: Numbers, places: Numbers) -> None:
        """Adds words at their places.

        Args:
            terms: The words.
            sizes: The number of places of each.
            memories: The memory of each place.
            places: The places.
        """
        hashes = np.frombuffer(b"".join(map(_hash, terms)), np.uint64).reshape(-1, 2)
        numbers = np.repeat(np.arange(len(terms)), sizes)
        for start in range(0, len(places), BLOCK):
            block = slice(start, start + BLOCK)
            at = _mixed(_mixed(memories[block].astype(np.uint64)) ^ places[block].astype(np.uint64))
            self._halves += _mixed(hashes[numbers[block]] ^ at[:, np.newaxis]).sum(axis=0, dtype=np.uint64)
        self.count += len(places)

    def digest(self) -> str:
        """The sum in hexadecimal."""
        return "".join(f"{half:016x}" for half in self._halves.tolist())


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection after which each bit depends on all bits before: the last step of the generator splitmix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)


@lru_cache(maxsize=1 << 17)
def _hash(term: str) -> bytes:
    """A hash of a term, in two halves."""
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _add_vocabulary(total: _WordSum, connection: Connection, index: str) -> None:
    """Adds the words of a full-text index of SQLite."""
    connection.execute("DROP TABLE IF EXISTS temp.compared_words")
    connection.execute(f"CREATE VIRTUAL TABLE temp.compared_words USING fts5vocab('main', '{index}', 'instance')")
    field = " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(_FIELDS[index]))
    place = f"offset << 2 | CASE col {field} END"
    # the terms come in order, so that nothing is sorted
    found = connection.execute(
        f"SELECT term, count(*), group_concat(doc), group_concat({place}) FROM temp.compared_words GROUP BY term"
    )
    for terms, sizes, *lists in _columns(found, TERMS):
        memories, places = (np.fromstring(",".join(each), np.int64, sep=",") for each in lists)
        total.add(terms, sizes, memories, places)


def _add_postings(analysed: _WordSum, written: _WordSum, connection: Any) -> None:
    """Adds the words of both indexes in PostgreSQL, which are in one table."""
    from speckit_memory.memory.store.postgres.postings import unpack_joined

    _, found = connection.stream(_POSTINGS, [])
    for terms, memories, *packed in _columns(found, BLOCK):
        for total, lists in zip((analysed, written), packed, strict=True):
            places, sizes = unpack_joined([each or b"" for each in lists])
            total.add(terms, sizes, np.repeat(np.array(memories), sizes), places)


def _columns(found: Iterable[tuple[Any, ...]], size: int) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """The values of each column, for one block of rows of this size after the other."""
    remaining = iter(found)
    while block := list(islice(remaining, size)):
        yield tuple(zip(*block, strict=True))
