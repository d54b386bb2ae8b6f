"""Terms and their numbers in a hash table stored in a file, instead of a dictionary built at start-up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.segment_files.container import Container, Writer

# Rules out most terms as spelling neighbours of another one, by length and set of letters.
#
# Without this, correcting a misspelt word would decode and compare every term of the store. An edit inserts, deletes,
# replaces or transposes letters: the length changes by one at most, and the set of letters loses and gains one at most.
# Two numbers per term therefore rule out most terms, vectorised.

LONGEST = 255
"""Characters. Longer terms are treated as having this length."""
TOGETHER = 65_536
"""Terms processed at once, which bounds the memory for temporary arrays."""


def _bit_of_byte() -> NDArray[np.uint32]:
    """A bit for every UTF-8 byte: 26 for letters, 3 for digits, one for other ASCII characters, one for all others, so
    that every character has one bit regardless of its number of bytes."""
    bits = np.full(256, 1 << 29, np.uint32)
    bits[128:] = 1 << 30
    # both cases of a letter share a bit; digits share three: 0–3, 4–6 and 7–9
    for place in range(26):
        bits[[ord("a") + place, ord("A") + place]] = 1 << place
    for digit in range(10):
        bits[ord("0") + digit] = 1 << 26 + digit * 3 // 10
    return bits


_BIT_OF_BYTE = _bit_of_byte()
_CONTINUES = (np.arange(256) & 0xC0) == 0x80
"""The UTF-8 continuation bytes, which begin no character."""


class NearTerms:
    """The lengths and letters of distinct terms. Takes 5 bytes per term."""

    __slots__ = ("_lengths", "_letters")

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.integer[Any]]) -> None:
        """Take the UTF-8 bytes of all terms, concatenated, and the end of each."""
        # _letters: (terms,) uint32, bits of `_BIT_OF_BYTE`; _lengths: (terms,) uint8, in characters
        self._letters = np.zeros(len(ends), np.uint32)
        self._lengths = np.zeros(len(ends), np.uint8)
        for first in range(0, len(ends), TOGETHER):
            part = slice(first, first + TOGETHER)
            begin = int(ends[first - 1]) if first else 0
            # before, after: (part,) start and end of each term within `said`
            after = ends[part] - begin
            before = np.concatenate([[0], after[:-1]])
            said = text[begin : begin + int(after[-1])]
            # `reduceat` cannot express empty slices: empty terms keep zeros.
            size, there = after - before, np.flatnonzero(after > before)
            if len(there):
                of_part = np.zeros(len(after), np.uint32)
                of_part[there] = np.bitwise_or.reduceat(_BIT_OF_BYTE[said], before[there])
                self._letters[part] = of_part
                continues = _CONTINUES[said]
                if continues.any():
                    size[there] -= np.add.reduceat(continues, before[there], dtype=np.int64)
            # size: characters, that is bytes without continuation bytes
            self._lengths[part] = np.minimum(size, LONGEST)

    def places(self, term: str, edits: int) -> NDArray[np.intp]:
        """The numbers of a superset of the terms within `edits` edits."""
        own = NearTerms.of([term])
        length = int(own._lengths[0])
        low, high = max(length - edits, 0), min(length + edits, LONGEST)
        near = np.flatnonzero((self._lengths >= low) & (self._lengths <= high))
        # One edit flips at most two bits of the letter set: that of the letter lost and that of the letter gained.
        changed = np.bitwise_count(self._letters[near] ^ own._letters[0])
        found: NDArray[np.intp] = near[changed <= 2 * edits]
        return found

    @classmethod
    def of(cls, terms: list[str]) -> NearTerms:
        """The lengths and letters of a few terms given as strings."""
        encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
        return cls(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([len(each) for each in encoded], dtype=int))


ROOM = 2
"""Buckets per term at least, so that the lookup of an unknown term usually meets an empty bucket."""
MOST_ASKED = 4_096
"""Lookups cached: the steps of a search look up the same terms one after the other."""


class TermTable:
    """Distinct terms, numbered 0, 1, … in byte order. Reads the arrays of a segment.

    `.text` holds the UTF-8 bytes of all terms, concatenated, `.ends` the end of each, `.hashed` the term numbers by
    bucket, then number, and `.buckets` the start of each bucket in it. The number of buckets is a power of two; the low
    bits of a term's CRC-32 select its bucket.
    """

    __slots__ = ("_asked", "_buckets", "_ends", "_hashed", "_mask", "_near", "_text")

    def __init__(self, segment: Container, name: str) -> None:
        """Take the arrays from the file without copying."""
        # Elements of these memoryviews are plain ints, at a quarter of the cost of numpy scalars.
        self._text, self._ends, self._buckets, self._hashed = (
            segment.array(f"{name}.{part}").data for part in ("text", "ends", "buckets", "hashed")
        )
        # `.buckets` has one element more than there are buckets.
        self._mask = len(self._buckets) - 2
        self._asked: dict[str, int | None] = {}
        self._near: NearTerms | None = None

    def get(self, term: str) -> int | None:
        """The number of a term, None for an unknown one."""
        try:
            return self._asked[term]
        except KeyError:
            if len(self._asked) >= MOST_ASKED:
                self._asked.clear()
            return self._asked.setdefault(term, self._found(term))

    def _found(self, term: str) -> int | None:
        wanted = term.encode("utf-8", "surrogatepass")
        # Within a bucket, term numbers ascend, and numbers are in byte order: it can be bisected by bytes.
        bucket = crc32(wanted) & self._mask
        first, end = self._buckets[bucket], self._buckets[bucket + 1]
        # Terms can be crafted to collide; bisection keeps the lookup fast even in a full bucket.
        at = bisect_left(self._hashed, wanted, first, end, key=self._bytes) if end - first > 1 else first
        if at == end or self._bytes(number := self._hashed[at]) != wanted:
            return None
        return number

    def known(self, terms: Sequence[str], hashes: NDArray[np.uint32]) -> Iterator[str]:
        """Those of these terms that the table has; `hashes` are their CRC-32 values (`term_hashes`)."""
        # Most unknown terms meet an empty bucket, and numpy finds those of all terms at once.
        bucket, starts = hashes & np.uint32(self._mask), np.asarray(self._buckets)
        there = np.flatnonzero(starts[bucket] < starts[bucket + np.uint32(1)]).tolist()
        return (terms[place] for place in there if self._found(terms[place]) is not None)

    def name(self, number: int) -> str:
        """The term with this number."""
        return str(self._bytes(number), "utf-8")

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms with these numbers."""
        text, ends = self._text, self._ends
        return [str(text[ends[number - 1] if number else 0 : ends[number]], "utf-8") for number in numbers]

    def near(self, term: str, edits: int) -> list[str]:
        """A superset of the terms within `edits` edits of a term (`near_terms`)."""
        if self._near is None:  # built for the first misspelt word; a process may never see one
            self._near = NearTerms(np.asarray(self._text), np.asarray(self._ends))
        numbers, ends = self._near.places(term, edits), np.asarray(self._ends)
        begins = np.where(numbers > 0, ends[numbers - 1], 0).tolist()
        text = bytes(self._text)  # copied once: slices of bytes take a third of the time of those of a memoryview
        return [text[begin:end].decode() for begin, end in zip(begins, ends[numbers].tolist(), strict=True)]

    def __iter__(self) -> Iterator[str]:
        """All terms in order of their numbers."""
        text, ends = bytes(self._text), self._ends.tolist()
        if text.isascii():  # one byte per character: decode all at once
            whole = text.decode()
            return (whole[begin:end] for begin, end in pairwise((0, *ends)))
        return (text[begin:end].decode() for begin, end in pairwise((0, *ends)))

    def __len__(self) -> int:
        """Number of terms."""
        return len(self._ends)

    def _bytes(self, number: int) -> bytes:
        return bytes(self._text[self._ends[number - 1] if number else 0 : self._ends[number]])


def term_hashes(terms: Iterable[str]) -> NDArray[np.uint32]:
    """The CRC-32 value of each term."""
    return np.array([crc32(term.encode("utf-8", "surrogatepass")) for term in terms], np.uint32)


def write_buckets(writer: Writer, name: str, hashes: NDArray[np.uint32]) -> None:
    """Write `.buckets` and `.hashed` for terms with these CRC-32 values, in order of their numbers."""
    # The next power of two, so that a mask selects the bucket.
    count = 1 << max(len(hashes) * ROOM - 1, 0).bit_length()
    bucket = hashes & np.uint32(count - 1)
    # Stable: numbers ascend within a bucket.
    order = np.argsort(bucket, kind="stable")
    # .buckets: (count + 1,) uint32, its last element the number of terms; .hashed: (terms,) uint32
    writer.add(f"{name}.buckets", np.searchsorted(bucket[order], np.arange(count + 1)).astype(np.uint32))
    writer.add(f"{name}.hashed", order.astype(np.uint32))
