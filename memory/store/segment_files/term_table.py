"""Terms and their numbers in a hash table stored in a file, instead of a dictionary built at start-up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.segment_files.container import Container, Writer

# Rules out most terms as spelling neighbours of another one, by length and letters.
#
# Without this, correcting a misspelt word would decode and compare every term of the store. An edit inserts, deletes,
# replaces or transposes letters: the length changes by one at most, and the letters lose and gain one at most. A length
# and 64 bits per term therefore rule out most terms, vectorised.

LONGEST = 255
"""Characters. Longer terms are treated as having this length."""
TOGETHER = 65_536
"""Terms processed at once, which bounds the memory for temporary arrays."""
_LETTERS = np.uint64((1 << 26) - 1)
_TWICE = np.uint64(26)


def _bit_of_byte() -> NDArray[np.uint64]:
    """The bit of every UTF-8 byte: one of 26 for letters, of ten for digits, one for other ASCII characters and one for
    the first byte of all others, so that every character has one bit. Both cases of a letter share theirs."""
    bits = np.zeros(256, np.uint64)
    bits[:128], bits[0xC0:] = 1 << 62, 1 << 63
    for place in range(26):
        bits[[ord("a") + place, ord("A") + place]] = 1 << place
    for digit in range(10):
        bits[ord("0") + digit] = 1 << 52 + digit
    return bits


_BIT_OF_BYTE = _bit_of_byte()


class NearTerms:
    """Distinct terms by length, with their letters. Takes 12 bytes per term."""

    __slots__ = ("_letters", "_starts", "_terms")

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.integer[Any]]) -> None:
        """Take the UTF-8 bytes of all terms, concatenated, and the end of each."""
        letters, lengths = _letters_and_lengths(text, ends)
        order = lengths.argsort(kind="stable")
        # _terms: (terms,) numbers by length; _letters: aligned with it; _starts: the first place of each length
        self._terms = order.astype(np.uint32)
        self._letters = letters[order]
        self._starts = lengths[order].searchsorted(np.arange(LONGEST + 2)).tolist()

    def places(self, term: str, edits: int) -> NDArray[np.uint32]:
        """The numbers of a superset of the terms within `edits` edits, ascending."""
        letters, wanted = _letters_and_length(term)
        found = []
        for length in range(max(wanted - edits, 0), min(wanted + edits, LONGEST) + 1):
            part = slice(self._starts[length], self._starts[length + 1])
            # A replacement flips two bits at most, those of the letter lost and of the letter gained; an insertion or
            # deletion flips one, and the difference in length says how many of the edits are such.
            changed = np.bitwise_count(self._letters[part] ^ letters)
            found.append(self._terms[part][changed <= 2 * edits - abs(length - wanted)])
        return np.sort(np.concatenate(found))


def _letters_and_lengths(
    text: NDArray[np.uint8], ends: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """The bits of each term's characters, with others for letters that it has twice, and its number of characters."""
    letters, lengths = np.zeros(len(ends), np.uint64), np.zeros(len(ends), np.uint8)
    for first in range(0, len(ends), TOGETHER):
        after = ends[first : first + TOGETHER].astype(np.intp)
        before = np.concatenate([ends[first - 1 : first] if first else [0], after[:-1]]).astype(np.intp)
        longest_first = (before - after).argsort(kind="stable")
        begins, negative_sizes = before[longest_first], (before - after)[longest_first]
        held, characters = np.zeros(len(after), np.uint64), np.zeros(len(after), np.intp)
        # No character takes more than four bytes, so that LONGEST characters are always read.
        for place in range(min(-int(negative_sizes[0]), 4 * LONGEST)):
            count = negative_sizes.searchsorted(-place)  # the terms that are longer
            bits = _BIT_OF_BYTE[text[begins[:count] + place]]
            characters[:count] += bits > 0  # no bit: a byte that continues a character
            held[:count] |= bits | (held[:count] & bits & _LETTERS) << _TWICE
        letters[first + longest_first] = held
        lengths[first + longest_first] = np.minimum(characters, LONGEST)
    return letters, lengths


@lru_cache(maxsize=64)
def _letters_and_length(term: str) -> tuple[np.uint64, int]:
    """Those of one term; the indexes of all fields are asked for the same ones."""
    said = term.encode("utf-8", "surrogatepass")
    letters, lengths = _letters_and_lengths(np.frombuffer(said, np.uint8), np.array([len(said)]))
    return letters[0], int(lengths[0])


class HashedTerms:
    """Some terms prepared for a lookup in several tables."""

    __slots__ = ("hashes", "names", "sizes")

    def __init__(self, names: Sequence[str]) -> None:
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        self.names = names
        self.hashes = np.array([crc32(each) for each in encoded], np.uint32)
        """The CRC-32 value of each."""
        self.sizes = np.array([len(each) for each in encoded], np.int64)
        """The bytes of each."""


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

    def known(self, terms: HashedTerms) -> Iterator[str]:
        """Those of these terms that the table has."""
        # Most unknown terms meet an empty bucket, or a single term of another length; numpy finds those at once.
        bucket, starts = terms.hashes & np.uint32(self._mask), np.asarray(self._buckets)
        first, end = starts[bucket], starts[bucket + np.uint32(1)]
        there = np.flatnonzero(first < end)
        met, ends = np.asarray(self._hashed)[first[there]].astype(np.intp), np.asarray(self._ends)
        sizes = ends[met] - np.where(met > 0, ends[met - 1], 0)
        there = there[(end[there] - first[there] > 1) | (sizes == terms.sizes[there])]
        return (name for name in map(terms.names.__getitem__, there.tolist()) if self._found(name) is not None)

    def name(self, number: int) -> str:
        """The term with this number."""
        return str(self._bytes(number), "utf-8")

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The terms with these numbers."""
        text, ends = self._text, self._ends
        return [str(text[ends[number - 1] if number else 0 : ends[number]], "utf-8") for number in numbers]

    def near(self, term: str, edits: int) -> list[str]:
        """A superset of the terms within `edits` edits of a term."""
        if self._near is None:  # built for the first misspelt word; a process may never see one
            self._near = NearTerms(np.asarray(self._text), np.asarray(self._ends))
        return self.names(self._near.places(term, edits).tolist())

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
