"""Passages that wait for their vectors, while others delete and edit the memories that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from speckit_memory.memory.indexing import Analyser, Indexer, IndexReport, pending_vectors
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.vectors import embedding_cache
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Vectors

Write = Callable[[str, str], Path]
VECTORS = (
    "SELECT m.key, v.embedding, t.tokens FROM chunks c JOIN memories m ON m.id = c.memory_id "
    "JOIN chunk_vectors v ON v.rowid = c.id JOIN chunk_tokens t ON t.chunk_id = c.id ORDER BY m.key, c.ordinal"
)


class Told:
    """An encoder without tokens; `beside` happens while it works."""

    model_id = "told"
    dimensions = 4

    def __init__(self, beside: Callable[[], None] = lambda: None) -> None:
        self.beside = beside
        self.texts: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        self.beside()
        found = np.zeros((len(texts), 4), np.float32)
        found[np.arange(len(texts)), [len(text) % 4 for text in texts]] = 1
        return found

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@pytest.fixture
def without_model(database: Database, root: Path) -> Indexer:
    return Indexer(database, None, Analyser(), root)


def deleted(path: Path, *keys: str) -> None:
    with Database.open(path) as other, other.write() as txn:
        for key in keys:
            writer.delete_memories(txn, [reader.get_memory(txn.connection, key).id])


def waiting(database: Database) -> list[str]:
    return [key for (key,) in rows(database.reader(), "SELECT key FROM memories WHERE embedding_status = 'pending'")]


def test_a_memory_that_is_deleted_while_the_waiting_ones_are_read_ends_no_index_run(
    database: Database,
    without_model: Indexer,
    indexer: Indexer,
    root: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a", "b", "c"):
        write(f"{name}.md", f"# {name}\n\nText {name}.\n")
    without_model.index([root], now=1.0)
    found = reader.pending_chunks
    left = ["b.md"]

    def pending_chunks(connection: Connection, limit: int) -> list[tuple[int, int]]:
        chunks = found(connection, limit)
        while left:
            deleted(database.path, left.pop())
        return chunks

    monkeypatch.setattr(reader, "pending_chunks", pending_chunks)

    report: IndexReport = indexer.index([root / "a.md"], now=2.0)

    assert (left, report.problems, report.pending, waiting(database)) == ([], [], 0, [])
    assert [key for key, _, _ in rows(database.reader(), VECTORS)] == ["a.md", "c.md"]


def test_a_text_that_came_while_another_was_embedded_gets_no_vector_of_that(
    database: Database, without_model: Indexer, embedder: StaticEmbedder, root: Path, write: Write
) -> None:
    for name in ("a", "b", "c"):
        write(f"{name}.md", f"# {name}\n\nText {name}.\n")
    without_model.index([root], now=1.0)
    found = pending_vectors.complete_batch(database, embedder)
    assert found is not None
    numbers = rows(
        database.reader(), "SELECT c.id FROM chunks c JOIN memories m ON m.id = c.memory_id AND key = 'a.md'"
    )
    write("a.md", "# a\n\nOther words altogether.\n")
    without_model.index([root / "a.md"], now=2.0)
    deleted(database.path, "b.md")
    edited = "SELECT c.id FROM chunks c JOIN memories m ON m.id = c.memory_id AND key = 'a.md'"
    assert rows(database.reader(), edited) == numbers  # the new text has the number of the old one

    with database.write() as txn:
        assert pending_vectors.store(txn, 3.0, found) == 1
        assert pending_vectors.store(txn, 3.0, found) == 0  # they have their vectors

    assert waiting(database) == ["a.md"]
    again = pending_vectors.complete_batch(database, embedder)
    with database.write() as txn:
        assert pending_vectors.store(txn, 4.0, again) == 1
    assert pending_vectors.complete_batch(database, embedder) is None
    made = rows(database.reader(), VECTORS)
    with Database.open(root.parent / "anew.db") as anew:
        Indexer(anew, embedder, Analyser(), root).index([root / "a.md", root / "c.md"], now=5.0)
        assert rows(anew.reader(), VECTORS) == made


def test_the_model_is_asked_outside_of_any_state_and_what_it_made_is_kept_group_by_group(
    database: Database, without_model: Indexer, root: Path, write: Write
) -> None:
    for number in range(70):
        write(f"{number}.md", f"# Number {number}\n\nText {number}.\n")
    without_model.index([root], now=1.0)
    held_back: list[bool] = []

    def beside() -> None:
        with Database.open(database.path) as other:
            with other.write() as txn:
                txn.connection.execute("UPDATE memories SET access_count = access_count + 1")
            [(_, frames, taken_up)] = rows(other.reader(), "PRAGMA wal_checkpoint(PASSIVE)")
            held_back.append(frames != taken_up)

    def keep(vectors: Mapping[str, Vectors]) -> None:
        kept.append(len(vectors))
        with database.write() as txn:
            embedding_cache.store(txn, Told.model_id, vectors, 2.0)

    kept: list[int] = []
    told = Told(beside)

    found = pending_vectors.complete_batch(database, told, keep)

    assert found is not None
    assert (kept, held_back) == ([64, 6], [False, False])
    assert (found.embedded.computed, len(found.embedded.used)) == ({}, 70)
    again = pending_vectors.complete_batch(database, told)
    assert again is not None
    assert np.array_equal(again.embedded.rows, found.embedded.rows)
    assert len(told.texts) == 70
