"""Computes the vectors of the second-look encoder in the background, a batch at a time (feature R1)."""

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
"""Texts whose vectors are written together: a killed process loses about a second of work."""
READ_CHARACTERS = 4_000
"""Characters of a whole memory given to the encoder, more than its maximum input."""


def waiting(embedder: Embedder, connection: Connection, now: float) -> int:
    """Return how many memories and passages have no vector yet; 1 if the encoder is unavailable, since only `make`
    reports why."""
    try:
        return encoder_vectors.waiting(connection, embedder.model_id, now)
    except SpeckitError:
        return 1


def make(embedder: Embedder, database: Database, now: float) -> int:
    """Embed the next batch of texts without vectors, writing each finished group; return how many.

    Raises E001 if the model fails; groups already written stay.
    """
    model_id = embedder.model_id
    with database.snapshot_read() as connection:
        found = encoder_vectors.next_waiting(connection, model_id, now, BATCH)
        # The snapshot ends here: no read transaction is open while the model runs.
        texts = _texts(connection, found)
    # Looked up per group, not per batch: another process may have embedded these texts meanwhile. `missing` maps
    # hashes to texts, so that equal texts are embedded once.
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
    """Embed all texts without vectors; return how many. Raises as `make` does."""
    made = 0
    while more := make(embedder, database, time.time()):
        made += more
    return made


def _groups(found: Sequence[WaitingText]) -> Iterator[Sequence[WaitingText]]:
    for start in range(0, len(found), GROUP):
        yield found[start : start + GROUP]


def _texts(connection: Connection, found: Sequence[WaitingText]) -> dict[int, str]:
    """Return the text to embed of each memory and passage, by id."""
    passages = texts_of(connection, [text.id for text in found if text.id != text.memory], 1)
    memories = rows(
        connection,
        # A title equal to the key was not written by anyone, so it is left out of the text.
        "SELECT m.id, CASE m.title WHEN m.key THEN '' ELSE m.title END, substr(b.body, 1, ?2) FROM memories m "
        "JOIN bodies b ON b.memory_id = m.id WHERE m.id IN (SELECT value FROM carray(?1))",
        (integers([text.id for text in found if text.id == text.memory]), READ_CHARACTERS),
    )
    return passages | {memory: embedding_text(title, "", body, 1) for memory, title, body in memories}
