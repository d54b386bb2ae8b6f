"""Passages that wait for their vectors, a batch at a time: an index run completes them, and so does background work."""

from __future__ import annotations

from typing import NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders.protocol import Embedder
from speckit_memory.memory.indexing.embedding import Embedded, embed, embedding_text, title_repeats
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.queries import value
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables import vectors
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.writing import writer

BATCH = 128
"""Passages whose vectors are completed in one transaction: a sentence encoder reads so many in some seconds."""

_WAITING = (
    "SELECT count(*) FROM memories m JOIN chunks c ON c.memory_id = m.id "
    "WHERE m.embedding_status = 'pending' AND c.vector = 'pending'"
)


class Completed(NamedTuple):
    """Passages that waited, in order, with their vectors by this model, and the key of the last one's memory."""

    chunks: list[int]
    embedded: Embedded
    model_id: str
    last: str


def waiting(connection: Connection) -> int:
    """How many passages wait for their vectors."""
    number: int = value(connection, _WAITING)
    return number


def completed(connection: Connection, embedder: Embedder) -> Completed | None:
    """The vectors of the next passages that wait, None when none does. Writes nothing. Raises E001."""
    found = reader.pending_chunks(connection, BATCH)
    if not found:
        return None
    memories = {memory: reader.get_memory(connection, memory) for _, memory in found}
    titles = {memory.id: "" if memory.title == memory.key else memory.title for memory in memories.values()}
    passages = reader.passages(connection, [chunk for chunk, _ in found])
    repeats = title_repeats(embedder)
    texts = (embedding_text(titles[each.memory], each.heading, each.text, repeats) for each in passages)
    embedded = embed(connection, embedder, texts)
    return Completed([each.id for each in passages], embedded, embedder.model_id, memories[found[-1][1]].key)


def in_use(connection: Connection, embedder: Embedder) -> None:
    """Raises E003 unless this model may complete the vectors of the store: those of two models never mix."""
    stored = get_meta(connection, vectors.MODEL)
    if stored not in (None, embedder.model_id):
        raise SpeckitError(
            "E003",
            f"the store holds vectors made by '{stored}', the model that can be had here is '{embedder.model_id}': "
            "what waits for vectors waits on",
            hint="Vectors of two models never mix.",
            actions=("name the store's own model where this runs", "run `speckit-memory index PATH` to embed again"),
        )


def keep(txn: Transaction, now: float, found: Completed | None) -> int:
    """Writes the vectors of passages that still wait; returns how many were made."""
    if found is None:
        return 0
    found.embedded.note(txn, found.model_id, now)
    tokens = dict(zip(found.chunks, found.embedded.tokens, strict=True)) if found.embedded.tokens else None
    writer.set_vectors(txn, dict(zip(found.chunks, found.embedded.rows, strict=True)), found.model_id, tokens)
    return len(found.chunks)
