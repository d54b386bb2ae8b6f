"""The distinct tokens of all chunks in one flat array, and the number of chunks that contain each token."""

from __future__ import annotations

import numpy as np

from speckit_memory.memory.store.read_model.vectors.growable_rows import GrowableArray
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.pipeline.ports import Ids, Tokens


class TokenTable:
    """Distinct tokens per chunk (compressed sparse rows). Immutable; `replaced` makes the next state and shares the
    tokens: for 10,000 chunks, in about a millisecond."""

    __slots__ = ("_chunks", "_frequencies", "_lengths", "_room", "_starts", "_used")

    def __init__(self, chunks: Ids, lengths: Ids, tokens: Tokens) -> None:
        """Take chunk ids ascending, the number of tokens of each, and their tokens, concatenated."""
        starts = np.cumsum(lengths) - lengths
        self._take(GrowableArray(tokens), len(tokens), chunks, starts, lengths, np.bincount(tokens))

    @classmethod
    def of_segment(cls, segment: Container) -> TokenTable:
        """The table backed by the mapped arrays of a segment file."""
        table = cls.__new__(cls)
        flat, chunks, starts, lengths, frequencies = (
            segment.array(f"token.{name}") for name in ("flat", "chunks", "starts", "lengths", "frequencies")
        )
        table._take(GrowableArray(flat), len(flat), chunks, starts, lengths, frequencies)
        return table

    def replaced(self, gone: Ids, chunks: Ids, lengths: Ids, tokens: Tokens) -> TokenTable:
        """A copy without some chunks and with new ones.

        Args:
            gone: Ids of the chunks to remove.
            chunks: Ids of the new chunks.
            lengths: Number of tokens of each new chunk.
            tokens: Their tokens, concatenated.
        """
        kept = ~np.isin(self._chunks, gone)
        old = self._gathered(self._starts[~kept], self._lengths[~kept])
        room, used = self._room.extended(self._used, tokens), self._used + len(tokens)
        all_lengths = np.append(self._lengths[kept], lengths)
        all_starts = np.append(self._starts[kept], self._used + np.cumsum(lengths) - lengths)
        all_chunks = np.append(self._chunks[kept], chunks)
        # chunks, starts, lengths: (n,), by chunk id; the tokens of chunk i are flat[starts[i] : starts[i] + lengths[i]]
        order = np.argsort(all_chunks, kind="stable")
        size = max(len(self._frequencies), int(tokens.max(initial=0)) + 1)
        # Update counts by the difference; recounting all tokens would cost as much as loading them.
        frequencies = np.bincount(tokens, minlength=size) - np.bincount(old, minlength=size)
        frequencies[: len(self._frequencies)] += self._frequencies
        twin = TokenTable.__new__(TokenTable)
        twin._take(room, used, all_chunks[order], all_starts[order], all_lengths[order], frequencies)
        return twin

    @property
    def count(self) -> int:
        """Number of chunks."""
        return len(self._chunks)

    def of(self, ids: Ids) -> list[Ids]:
        """The distinct tokens of each chunk, ascending; empty for an unknown id."""
        first = np.searchsorted(self._chunks, ids, "left")
        known = np.searchsorted(self._chunks, ids, "right") > first
        return [
            self._room.stretch(int(self._starts[at]), int(self._lengths[at])).astype(np.int64)
            if there
            else np.empty(0, np.int64)
            for at, there in zip(first.tolist(), known.tolist(), strict=True)
        ]

    def frequency(self, tokens: Ids) -> Ids:
        """Number of chunks that contain each token."""
        found = np.zeros(len(tokens), np.int64)
        known = tokens < len(self._frequencies)
        found[known] = self._frequencies[tokens[known]]
        return found

    def _take(self, room: GrowableArray, used: int, chunks: Ids, starts: Ids, lengths: Ids, frequencies: Ids) -> None:
        self._room = room
        self._used = used
        self._chunks = chunks
        self._starts = starts
        self._lengths = lengths
        self._frequencies = frequencies

    def _gathered(self, starts: Ids, lengths: Ids) -> Tokens:
        """The tokens of some chunks, concatenated."""
        # places: start, start+1, … of each chunk, concatenated without a Python loop
        ends = np.cumsum(lengths)
        places = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
        gathered: Tokens = self._room.take(places)
        return gathered
