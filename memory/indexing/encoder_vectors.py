"""Vectors for the second look, made in the background: what waits for its vector, a batch at a time (feature R1)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.spaces import stamp
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.passage_vectors import embedding_text, texts_of
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.tables.vectors import embedding_cache, embedding_models, encoder_vectors
from speckit_memory.memory.store.tables.vectors.encoder_vectors import WaitingText

BATCH = 64
"""Texts of one batch."""
GROUP = 16
"""Texts whose vectors are written together: what a killed process loses is the work of a second."""
READ_CHARACTERS = 4_000
"""Of a whole memory the encoder is given so many characters, which is more than it reads."""


def waiting(embedder: Embedder, connection: Connection, now: float) -> int:
    """How many memories and passages wait. One for an encoder that cannot be had: whoever makes vectors tells why."""
    try:
        return encoder_vectors.waiting(connection, embedder.model_id, now)
    except SpeckitError:
        return 1


def make(embedder: Embedder, database: Database, now: float) -> int:
    """Makes the vectors of the next texts that wait, and writes each group when it is made; returns how many.

    Raises E001 when the model fails: what was made until then stays.
    """
    model_id = embedder.model_id
    with database.snapshot_read() as connection:
        found = encoder_vectors.next_waiting(connection, model_id, now, BATCH)
        texts = _texts(connection, found)
    for group in _groups(found):
        keys = {text.key for text in group}
        there = embedding_cache.lookup(database.reader(), model_id, keys)
        missing = {text.key: texts[text.id] for text in group if text.key not in there}
        made = dict(zip(missing, embedder.embed_documents(list(missing.values())), strict=True)) if missing else {}
        with database.write() as txn:
            if made:
                embedding_models.note(txn, stamp(embedder), now)
            embedding_cache.store(txn, model_id, made, now)
            embedding_cache.touch(txn, model_id, there, now)
    return len(found)


def make_all(embedder: Embedder, database: Database) -> int:
    """Makes all vectors that are missing; returns how many. Raises as `make` does."""
    made = 0
    while more := make(embedder, database, time.time()):
        made += more
    return made


def _groups(found: Sequence[WaitingText]) -> Iterator[Sequence[WaitingText]]:
    for start in range(0, len(found), GROUP):
        yield found[start : start + GROUP]


def _texts(connection: Connection, found: Sequence[WaitingText]) -> dict[int, str]:
    """What is embedded of each memory and passage, by id."""
    passages = texts_of(connection, [text.id for text in found if text.id != text.memory], 1)
    memories = rows(
        connection,
        "SELECT m.id, CASE m.title WHEN m.key THEN '' ELSE m.title END, substr(t.body, 1, ?2) FROM memories m "
        "JOIN texts t ON t.memory_id = m.id WHERE m.id IN (SELECT value FROM carray(?1))",
        (integers([text.id for text in found if text.id == text.memory]), READ_CHARACTERS),
    )
    return passages | {memory: embedding_text(title, "", body, 1) for memory, title, body in memories}
