"""Completes pending vectors of passages batch by batch, for index runs and background work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.passage_vectors import EmbeddedTexts, embed, texts_of, title_repeats
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Vectors

BATCH = 128
"""Passages completed per transaction; a sentence encoder takes some seconds for them."""

_WAITING = (
    "SELECT count(*) FROM memories m JOIN chunks c ON c.memory_id = m.id "
    "WHERE m.embedding_status = 'pending' AND c.vector = 'pending'"
)


class EmbeddedBatch(NamedTuple):
    """A batch of completed passages: embedded texts by chunk id in order, their vectors, the model id, how often the
    title is repeated for this model, and the key of the last passage's memory."""

    texts: dict[int, str]
    embedded: EmbeddedTexts
    model_id: str
    repeats: int
    last: str


def waiting(connection: Connection) -> int:
    """Return how many passages have pending vectors."""
    number: int = value(connection, _WAITING)
    return number


def complete_batch(
    database: Database, embedder: Embedder, keep: Callable[[Mapping[str, Vectors]], None] | None = None
) -> EmbeddedBatch | None:
    """Embed the next batch of pending passages; None if there are none. Writes nothing itself; `keep` as in `embed`.

    The snapshot is released before the model runs, which may take minutes; `store` detects changes made since. Raises
    E001.
    """
    repeats = title_repeats(embedder)
    with database.snapshot_read() as connection:
        found = reader.pending_chunks(connection, BATCH)
        if not found:
            return None
        chunks = [chunk for chunk, _ in found]
        read = texts_of(connection, chunks, repeats)
        last = reader.get_memory(connection, found[-1][1]).key
    # `texts_of` returns no particular order; the vectors below follow that of `chunks`.
    texts = {chunk: read[chunk] for chunk in chunks}
    return EmbeddedBatch(
        texts, embed(database.reader(), embedder, texts.values(), keep), embedder.model_id, repeats, last
    )


def in_use(connection: Connection, embedder: Embedder) -> None:
    """Raise E003 if the store has vectors of another model: vectors of two models are never mixed."""
    stored = get_meta(connection, vectors.MODEL)
    if stored not in (None, embedder.model_id):
        raise SpeckitError(
            "E003",
            f"the store holds vectors made by '{stored}', the model available here is '{embedder.model_id}': "
            "pending passages stay pending",
            hint="Vectors of two models are never mixed.",
            actions=("configure the store's model here", "run `speckit-memory index PATH` to embed again"),
        )


def store(txn: Transaction, now: float, found: EmbeddedBatch | None) -> int:
    """Store the vectors of passages that are still pending and unchanged; return how many."""
    if found is None:
        return 0
    # Before the texts are compared: vectors in the cache stay valid for their text, also if the passage is deleted.
    found.embedded.note(txn, found.model_id, now)
    # After an edit, a chunk id may belong to a new text.
    read = texts_of(txn.connection, list(found.texts), found.repeats)
    # same: chunk id to its row in `rows`, shape (n, dimensions), for passages with the embedded text.
    same = {chunk: at for at, (chunk, text) in enumerate(found.texts.items()) if read.get(chunk) == text}
    rows, tokens = found.embedded.rows, found.embedded.tokens
    return writer.set_vectors(
        txn,
        {chunk: rows[at] for chunk, at in same.items()},
        found.model_id,
        {chunk: tokens[at] for chunk, at in same.items()} if tokens else None,
    )
