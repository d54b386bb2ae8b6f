"""Passages that wait for their vectors, a batch at a time: an index run completes them, and so does background work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.passage_vectors import Embedded, embed, texts_of, title_repeats
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Vectors

BATCH = 128
"""Passages whose vectors are completed in one transaction: a sentence encoder reads so many in some seconds."""

_WAITING = (
    "SELECT count(*) FROM memories m JOIN chunks c ON c.memory_id = m.id "
    "WHERE m.embedding_status = 'pending' AND c.vector = 'pending'"
)


class Completed(NamedTuple):
    """Passages that waited, by id and in order, what was embedded of each, their vectors by this model, which sees
    titles so often, and the key of the last one's memory."""

    texts: dict[int, str]
    embedded: Embedded
    model_id: str
    repeats: int
    last: str


def waiting(connection: Connection) -> int:
    """How many passages wait for their vectors."""
    number: int = value(connection, _WAITING)
    return number


def completed(
    database: Database, embedder: Embedder, keep: Callable[[Mapping[str, Vectors]], None] | None = None
) -> Completed | None:
    """The vectors of the next passages that wait, None when none does. Writes nothing itself; `keep` as in `embed`.

    The passages are read in one state, which is let go of before the model is asked: that may take minutes. What
    becomes of them meanwhile is seen by `store`. Raises E001.
    """
    repeats = title_repeats(embedder)
    with database.snapshot_read() as connection:
        found = reader.pending_chunks(connection, BATCH)
        if not found:
            return None
        chunks = [chunk for chunk, _ in found]
        read = texts_of(connection, chunks, repeats)
        last = reader.get_memory(connection, found[-1][1]).key
    texts = {chunk: read[chunk] for chunk in chunks}
    return Completed(texts, embed(database.reader(), embedder, texts.values(), keep), embedder.model_id, repeats, last)


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


def store(txn: Transaction, now: float, found: Completed | None) -> int:
    """Writes the vectors of passages that still wait and read as they did; returns how many those were."""
    if found is None:
        return 0
    found.embedded.note(txn, found.model_id, now)
    # an edit gives the number of a passage to its new text
    read = texts_of(txn.connection, list(found.texts), found.repeats)
    same = {chunk: at for at, (chunk, text) in enumerate(found.texts.items()) if read.get(chunk) == text}
    rows, tokens = found.embedded.rows, found.embedded.tokens
    return writer.set_vectors(
        txn,
        {chunk: rows[at] for chunk, at in same.items()},
        found.model_id,
        {chunk: tokens[at] for chunk, at in same.items()} if tokens else None,
    )
