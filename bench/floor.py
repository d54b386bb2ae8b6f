"""The least that a hybrid search can do, timed beside the searches that are held against it.

One product of the query with all vectors, the sum of precomputed BM25 impacts over the postings of its words, and the
ten best of each. It is plain numpy over the texts and vectors of the same store, in the same thread, and shares no code
with the product. Limits are ratios to it: both run on the same machine in the same moment.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from speckit_memory.engine import Memory
from speckit_memory.memory.store.reading import loading

BEST = 10
K1, B = 1.2, 0.75
Rows = NDArray[np.int64]
Ids = NDArray[np.int64]


class Question(NamedTuple):
    """What of a query is known before the search itself begins: its direction, and the codes of its words."""

    direction: NDArray[np.float32]
    words: tuple[int, ...]


class Floor:
    """The vectors of a store as one matrix, and the impact of each word on each memory, laid out word by word."""

    def __init__(self, memory: Memory) -> None:
        """Reads the store of an open memory."""
        self._memory = memory
        places: dict[int, int] = {}  # of memories, in the order of ids
        self._codes: dict[str, int] = {}
        rows, words = [], []

        def add(row: int, tokens: list[str]) -> None:
            words.append(np.array([self._codes.setdefault(token, len(self._codes)) for token in tokens], np.int32))
            rows.append(np.full(len(tokens), row, np.int32))

        with memory.session.database.snapshot_read() as connection:
            self._passages, self._vectors = loading.load_vectors(connection)
            for id_, *fields in loading.load_fields(connection):
                row = places.setdefault(id_, len(places))
                add(row, [word for text in fields for word in text.split(" ") if word])
            for _, id_, _, text in loading.load_chunks(connection):
                add(places[id_], text.split(" "))
        self._memories = np.array(list(places), np.int64)
        self._lay_out(np.concatenate(rows).astype(np.int64), np.concatenate(words).astype(np.int64))

    def _lay_out(self, rows: Rows, words: Rows) -> None:
        count = len(self._memories)
        lengths = np.bincount(rows, minlength=count)
        pairs, counts = np.unique(words * count + rows, return_counts=True)
        words, rows = np.divmod(pairs, count)
        holders = np.bincount(words, minlength=len(self._codes))
        rarity = np.log((count - holders + 0.5) / (holders + 0.5) + 1)
        norms = K1 * (1 - B + B * lengths / lengths.mean())
        self._impacts = (rarity[words] * counts * (K1 + 1) / (counts + norms[rows])).astype(np.float32)
        self._rows = rows.astype(np.int32)
        self._ends = np.concatenate([[0], np.cumsum(holders)]).tolist()

    def question(self, text: str) -> Question:
        """A query as the store's own analyser and model read it."""
        words = dict.fromkeys(self._memory.models.analyser.tokens(text))
        direction = np.asarray(self._memory.models.embedder.embed_query(text), np.float32)
        return Question(direction, tuple(self._codes[word] for word in words if word in self._codes))

    def search(self, question: Question) -> tuple[Ids, Ids]:
        """The ids of the nearest passages, and of the memories that score best by words."""
        similarity = self._vectors @ question.direction
        scores = np.zeros(len(self._memories), np.float32)
        for word in question.words:
            held = slice(self._ends[word], self._ends[word + 1])
            scores[self._rows[held]] += self._impacts[held]
        return self._passages[_best(similarity)], self._memories[_best(scores)]

    def measure(self, question: Question) -> float:
        """Milliseconds of processor time of one search."""
        begin = time.thread_time()
        self.search(question)
        return (time.thread_time() - begin) * 1000


def _best(scores: NDArray[np.float32]) -> Rows:
    best = np.argpartition(scores, -BEST)[-BEST:]
    ordered: Rows = best[np.argsort(-scores[best])]
    return ordered
