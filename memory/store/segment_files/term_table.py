"""Terms and their numbers, found in a hash table that lies in a file instead of a dictionary made at the start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.segment_files.container import Container, Writer
from speckit_memory.memory.store.segment_files.near_terms import NearTerms
from speckit_memory.pipeline.ports.immutable import own

ROOM = 2
"""So many buckets or more there are for each term, so that most terms that are not there meet an empty one."""
MOST_ASKED = 4_096
"""So many answers are remembered: the steps of a search ask for the same terms one after the other."""


class TermTable:
    """Distinct terms, numbered 0, 1, … by ascending bytes. Implements `Terms` over arrays where they lie.

    `.text` holds the UTF-8 bytes of all terms one after the other, `.ends` where each ends, `.hashed` the numbers of
    the terms by bucket and number, and `.buckets` where each bucket begins there. There is a power of two of buckets;
    the lowest bits of the CRC-32 of a term choose its own.
    """

    __slots__ = ("_asked", "_buckets", "_ends", "_hashed", "_mask", "_near", "_text")

    def __init__(self, segment: Container, name: str) -> None:
        """Take the arrays as they lie in the file; nothing is copied."""
        # Elements of these views are plain numbers and cost a quarter of what numpy's cost.
        self._text, self._ends, self._buckets, self._hashed = (
            segment.array(f"{name}.{part}").data for part in ("text", "ends", "buckets", "hashed")
        )
        self._mask = len(self._buckets) - 2
        self._asked: dict[str, int | None] = {}
        self._near: NearTerms | None = None

    def get(self, term: str) -> int | None:
        """The number of a term, None for one that is not there."""
        try:
            return self._asked[term]
        except KeyError:
            if len(self._asked) >= MOST_ASKED:
                self._asked.clear()
            term = own(term)
            return self._asked.setdefault(term, self._found(term))

    def _found(self, term: str) -> int | None:
        wanted = term.encode("utf-8", "surrogatepass")
        bucket = crc32(wanted) & self._mask
        first, end = self._buckets[bucket], self._buckets[bucket + 1]
        # Terms can be chosen so that they share a bucket; halving finds them among many as well.
        at = bisect_left(self._hashed, wanted, first, end, key=self._bytes) if end - first > 1 else first
        if at == end or self._bytes(number := self._hashed[at]) != wanted:
            return None
        return number

    def name(self, number: int) -> str:
        """The term of a number."""
        return str(self._bytes(number), "utf-8")

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms of these numbers."""
        text, ends = self._text, self._ends
        return [str(text[ends[number - 1] if number else 0 : ends[number]], "utf-8") for number in numbers]

    def near(self, term: str, edits: int) -> Iterator[str]:
        """All terms that are at most so many edits away from another (`near_terms`), and some that are not."""
        if self._near is None:  # for the first unknown word: there may be none in the life of a process
            self._near = NearTerms(np.asarray(self._text), np.asarray(self._ends))
        return map(self.name, self._near.places(own(term), edits).tolist())

    def __iter__(self) -> Iterator[str]:
        """All terms by their numbers."""
        text, ends = bytes(self._text), self._ends.tolist()
        if text.isascii():  # one character a byte: decoded at once
            whole = text.decode()
            return (whole[begin:end] for begin, end in pairwise((0, *ends)))
        return (text[begin:end].decode() for begin, end in pairwise((0, *ends)))

    def __len__(self) -> int:
        """How many terms there are."""
        return len(self._ends)

    def _bytes(self, number: int) -> bytes:
        return bytes(self._text[self._ends[number - 1] if number else 0 : self._ends[number]])


def write_buckets(writer: Writer, name: str, hashes: NDArray[np.uint32]) -> None:
    """Writes `.buckets` and `.hashed` of terms with these CRC-32, in the order of their numbers."""
    count = 1 << max(len(hashes) * ROOM - 1, 0).bit_length()
    bucket = hashes & np.uint32(count - 1)
    order = np.argsort(bucket, kind="stable")
    writer.add(f"{name}.buckets", np.searchsorted(bucket[order], np.arange(count + 1)).astype(np.uint32))
    writer.add(f"{name}.hashed", order.astype(np.uint32))
