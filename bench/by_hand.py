"""A hybrid search as one would write it by hand: FTS5 and sqlite-vec in one file, fused by reciprocal ranks.

It has no fields, links, ages, sessions, excerpts or explanations: one statement for words, one for vectors, one for the
ten rows. Texts and vectors are those of the store that it is compared with, and the same model embeds the question.
"""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from speckit_memory.engine import Memory
from speckit_memory.memory.store.reading import loading

DEPTH, SHOWN = 50, 10
RANK_CONSTANT = 60
"""Of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""
_WORD = re.compile(r"\w+")


class HandWrittenSearch:
    """FTS5 over titles and texts, sqlite-vec over the vectors of passages."""

    def __init__(self, memory: Memory, path: Path) -> None:
        """Copies the texts and vectors of an open memory to a new file."""
        self._embedder = memory.models.embedder
        with memory.session.database.snapshot_read() as source:
            texts = source.execute("SELECT id, title, body FROM memories JOIN bodies ON memory_id = id").fetchall()
            chunks, memories = loading.load_chunk_parents(source)
            parents = dict(zip(chunks.tolist(), memories.tolist(), strict=True))
            passages, vectors = loading.load_vectors(source)
        self._connection = apsw.Connection(str(path))
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.pragma("journal_mode", "wal")
        with self._connection:
            self._connection.execute(
                "CREATE VIRTUAL TABLE words USING fts5(title, body, tokenize = 'porter unicode61')"
            )
            self._connection.executemany("INSERT INTO words (rowid, title, body) VALUES (?, ?, ?)", texts)
            size = vectors.shape[1]
            self._connection.execute(
                f"CREATE VIRTUAL TABLE vectors USING vec0(memory INTEGER, vector float[{size}] distance_metric=cosine)"
            )
            self._connection.executemany(
                "INSERT INTO vectors (rowid, memory, vector) VALUES (?, ?, ?)",
                ((id_, parents[id_], row.tobytes()) for id_, row in zip(passages.tolist(), vectors, strict=True)),
            )

    def search(self, query: str) -> list[tuple[int, str, str]]:
        """The id, title and text of the ten best memories."""
        words = dict.fromkeys(_WORD.findall(query.lower()))
        match = " OR ".join(f'"{word}"' for word in words)
        by_words = self._connection.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, DEPTH)
        )
        scores: dict[int, float] = {}
        for rank, (id_,) in enumerate(by_words, 1):
            scores[id_] = 1 / (RANK_CONSTANT + rank)
        direction = np.asarray(self._embedder.embed_query(query), np.float32).tobytes()
        by_vectors = self._connection.execute(
            "SELECT memory FROM vectors WHERE vector MATCH ? AND k = ? ORDER BY distance", (direction, DEPTH)
        )
        for rank, id_ in enumerate(dict.fromkeys(memory for (memory,) in by_vectors), 1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (RANK_CONSTANT + rank)
        best = sorted(scores, key=lambda id_: (-scores[id_], id_))[:SHOWN]
        rows = {
            row[0]: row
            for row in self._connection.execute(
                f"SELECT rowid, title, body FROM words WHERE rowid IN ({','.join('?' * len(best))})", best
            )
        }
        return [rows[id_] for id_ in best]

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()
