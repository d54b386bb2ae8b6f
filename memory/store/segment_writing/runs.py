"""External sorting of postings: rows by term, collected in runs of bounded size and merged in term order.

Each run is sorted and spilled to a file. For any size of store, memory holds one run of tokens and a few numbers per
row and per distinct term of each run.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, groupby, islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.segment_files.container import Writer
from speckit_memory.memory.store.segment_files.row_lists import encode, smallest_type
from speckit_memory.memory.store.segment_files.term_table import write_buckets
from speckit_memory.memory.store.segment_writing.spill import Spill, Stretch

TOKENS = 1_000_000
"""Tokens sorted at a time, in about 50 MB."""
TERMS = 1 << 16
"""Distinct terms per run at most, since they are held as strings: 10 MB for short ones."""
_NAMES = 65_536
"""Terms written at a time."""
_NAMES_OF_RUN = 1_024
"""Terms of one run read at a time: a million memories make hundreds of runs, which are all merged at once."""

Counts = NDArray[np.integer[Any]]


class _Run(NamedTuple):
    """Some consecutive rows. Terms are numbered within the run, in byte order."""

    text: Stretch
    ends: Stretch
    terms: int
    """Number of terms."""
    holders: Stretch
    """Number of rows that contain each term."""
    uses: Stretch
    """Number of tokens of each term."""
    rows: Stretch
    frequency: Stretch
    """Term after term: the rows that contain it, and its frequency in each."""
    places: Stretch | None
    """Term after term: its positions in the rows that contain it."""
    row_codes: Stretch
    """Row after row: the numbers of its distinct terms, ascending."""


class Runs:
    """The terms of rows 0, 1, …, added row by row and written at the end."""

    def __init__(self, spill: Spill, *, ordered: bool = False) -> None:
        """With `ordered`, the positions of terms in their rows are recorded as well."""
        self._spill = spill
        self.ordered = ordered
        self._runs: list[_Run] = []
        self._height = 0
        self._highest = 0
        self._sizes: list[Counts] = []
        # _numbers: for each run, the global numbers of its terms, ascending; _terms: the number of distinct terms.
        self._numbers: list[NDArray[np.int32]] = []
        self._terms = 0
        self._begin()

    def _begin(self) -> None:
        # an unseen term gets the next number
        self._numbering: defaultdict[str, int] = defaultdict(count().__next__)
        # array("q") takes 8 bytes per token, a list of ints several times as much
        self._flat = array("q")
        self._lengths = array("q")

    def add(self, tokens: Sequence[str]) -> None:
        """Add the tokens of the next row."""
        self._flat.extend(map(self._numbering.__getitem__, tokens))
        self._lengths.append(len(tokens))
        if len(self._flat) + len(self._lengths) >= TOKENS or len(self._numbering) >= TERMS:
            self._end_run()

    def _end_run(self) -> None:
        put = self._spill.put
        # by code point, which is the byte order of UTF-8
        terms = sorted(self._numbering)
        number = np.empty(len(terms), np.int64)
        # From numbers in order of first occurrence to numbers in byte order, as `TermTable` needs.
        number[[self._numbering[term] for term in terms]] = np.arange(len(terms))
        encoded = [term.encode() for term in terms]
        text = put(np.frombuffer(b"".join(encoded), np.uint8))
        ends = put(np.cumsum([len(each) for each in encoded], dtype=np.int64))
        # codes: (tokens,) int64, the term of each token, row after row; row: (tokens,), its row
        codes = number[np.frombuffer(self._flat, np.int64)]
        sizes = np.array(self._lengths, np.int32)
        self._begin()
        height, length = len(sizes), len(codes)
        row = np.repeat(np.arange(height), sizes)
        places = None
        if self.ordered:
            order = np.argsort(codes, kind="stable")
            first = np.cumsum(sizes) - sizes
            places = put((order - first[row[order]]).astype(np.int32))
            del order
        uses = put(np.bincount(codes, minlength=len(terms)).astype(np.int32))
        # One sort of (term, row) pairs packed into single numbers groups, orders and counts the postings at once.
        codes *= height
        codes += row
        codes.sort()
        begins = np.flatnonzero(np.diff(codes, prepend=-1))
        frequency = np.diff(begins, append=length).astype(np.int32)
        self._highest = max(self._highest, int(frequency.max(initial=0)))
        # code, rows: (postings,), by term, then row
        code, rows = np.divmod(codes[begins], max(height, 1))
        del codes, row, begins
        self._runs.append(
            _Run(
                text=text,
                ends=ends,
                terms=len(terms),
                holders=put(np.bincount(code, minlength=len(terms)).astype(np.int32)),
                uses=uses,
                rows=put((rows + self._height).astype(np.int32)),
                frequency=put(frequency),
                places=places,
                # by row; stable, so the terms of a row still ascend
                row_codes=put(code[np.argsort(rows, kind="stable")].astype(np.int32)),
            )
        )
        self._sizes.append(sizes)
        self._height += height

    def write_terms(self, writer: Writer, name: str) -> None:
        """Write the distinct terms in the format of `TermTable`, and number them."""
        lengths, hashes = array("q"), array("I")

        def texts() -> Iterator[NDArray[np.uint8]]:
            for terms in _batched(self._numbering_all()):
                encoded = [term.encode() for term in terms]
                lengths.extend(map(len, encoded))
                hashes.extend(map(crc32, encoded))
                yield np.frombuffer(b"".join(encoded), np.uint8)

        writer.stream(f"{name}.text", np.uint8, texts())
        writer.add(f"{name}.ends", np.cumsum(np.array(lengths, np.int64)))
        write_buckets(writer, name, np.array(hashes, np.uint32))

    def number_terms(self) -> None:
        """Number the distinct terms without writing them."""
        for _ in self._numbering_all():
            pass

    def _numbering_all(self) -> Iterator[str]:
        """The distinct terms in order; all numbers are set once the iterator is exhausted."""
        if self._lengths:
            self._end_run()
        numbers = [np.empty(run.terms, np.int32) for run in self._runs]
        # filled[i]: number of terms of run i that are numbered
        filled = [0] * len(numbers)
        last, known = None, 0
        for term, run in self._merged_terms():
            if term != last:
                last, known = term, known + 1
                yield term
            # A run yields its terms in order, so its global numbers are filled from the front.
            numbers[run][filled[run]] = known - 1
            filled[run] += 1
        self._numbers, self._terms = numbers, known

    def terms(self) -> Iterator[str]:
        """The distinct terms in order, after they have been numbered."""
        return (term for term, _ in groupby(self._merged_terms(), itemgetter(0)))

    def _merged_terms(self) -> Iterator[tuple[str, int]]:
        """Every term of every run with the index of the run, ordered by term, then run."""
        return heapq.merge(*map(self._terms_of, range(len(self._runs))))

    def _terms_of(self, run: int) -> Iterator[tuple[str, int]]:
        found, begin = self._runs[run], 0
        for at in range(0, found.terms, _NAMES_OF_RUN):
            part = self._spill.get(found.ends, at, min(at + _NAMES_OF_RUN, found.terms))
            text = self._spill.get(found.text, begin, int(part[-1])).tobytes()
            borders = (part - begin).tolist()
            begin = int(part[-1])
            for start, end in pairwise((0, *borders)):
                yield text[start:end].decode(), run

    def write_postings(self, writer: Writer, name: str) -> None:
        """Write `.starts`, where the postings of each term begin, and its rows as `.gaps`, which begin at
        `.gap_starts`: see `RowLists`."""
        every = [run.holders for run in self._runs]
        total = self._total(every)
        writer.add(f"{name}.starts", np.append(0, np.cumsum(total)))
        sizes = [np.zeros(1, np.int64)]

        def gaps() -> Iterator[NDArray[np.uint16]]:
            blocks = self._merged(total, every, [run.rows for run in self._runs])
            for (first, last), rows in zip(_spans(total), blocks, strict=True):
                of_span, sizes_of_span = encode(rows, total[first:last])
                sizes.append(sizes_of_span)
                yield of_span

        writer.stream(f"{name}.gaps", np.uint16, gaps())
        writer.add(f"{name}.gap_starts", np.cumsum(np.concatenate(sizes)))

    def write_frequencies(self, writer: Writer, name: str) -> None:
        """Write `.frequency`: the frequency of the term in each of these rows."""
        every = [run.holders for run in self._runs]
        frequencies = self._merged(self._total(every), every, [run.frequency for run in self._runs])
        writer.stream(f"{name}.frequency", smallest_type(self._highest), frequencies)

    def write_order(self, writer: Writer, name: str) -> None:
        """Write `.place_starts` and `.places`, the positions of each term in its rows, and `.first` of the rows."""
        uses = [run.uses for run in self._runs]
        total = self._total(uses)
        writer.add(f"{name}.place_starts", np.append(0, np.cumsum(total)))
        places = [run.places for run in self._runs if run.places is not None]
        sizes = self.sizes
        kind = smallest_type(int(sizes.max(initial=0)))
        writer.stream(f"{name}.places", kind, self._merged(total, uses, places))
        writer.add(f"{name}.first", np.cumsum(sizes) - sizes + np.arange(len(sizes)))

    def codes(self) -> Iterator[NDArray[np.int32]]:
        """The numbers of the distinct terms of each row, in blocks."""
        for run, number in zip(self._runs, self._numbers, strict=True):
            yield number[self._spill.get(run.row_codes)]

    @property
    def sizes(self) -> Counts:
        """The number of tokens of each row."""
        return np.concatenate([np.empty(0, np.int64), *self._sizes])

    def _total(self, counts: Sequence[Stretch]) -> Counts:
        """For each term, the sum over the runs."""
        total = np.zeros(self._terms, np.int64)
        for number, of_run in zip(self._numbers, counts, strict=True):
            total[number] += self._spill.get(of_run)
        return total

    def _merged(self, total: Counts, counts: Sequence[Stretch], stretches: Sequence[Stretch]) -> Iterator[NDArray[Any]]:
        """The elements of all runs, by term, then run; `counts`: elements per term of each run, `total`: their sum."""
        terms_before = [0] * len(counts)
        elements_before = [0] * len(counts)
        # a span at a time, so that about `TOKENS` elements are in memory
        for _, last in _spans(total):
            parts, terms = [], []
            for run, (number, of_run, stretch) in enumerate(zip(self._numbers, counts, stretches, strict=True)):
                # The run's terms in this span, then their elements: both continue where the previous span ended.
                low, high = terms_before[run], int(np.searchsorted(number, last))
                held = self._spill.get(of_run, low, high)
                begin, end = elements_before[run], elements_before[run] + int(held.sum())
                parts.append(self._spill.get(stretch, begin, end))
                terms.append(np.repeat(number[low:high], held))
                terms_before[run], elements_before[run] = high, end
            # Stable: within a term, elements stay in run order, hence in row order.
            yield np.concatenate(parts)[np.argsort(np.concatenate(terms), kind="stable")]


def _spans(total: Counts) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive terms with about `TOKENS` elements each, or a single term with more."""
    ends = np.cumsum(total)
    first = 0
    while first < len(total):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + TOKENS, "right")), first + 1)
        yield first, last
        first = last


def _batched(terms: Iterator[str]) -> Iterator[list[str]]:
    """Lists of at most `_NAMES` terms."""
    while waiting := list(islice(terms, _NAMES)):
        yield waiting
