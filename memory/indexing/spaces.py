"""Builds the vectors of another model while the current ones are in use, and switches to them (features I6, I7).

New vectors are computed into the cache, batch by batch, while searches use the old ones. A killed process loses one
batch, and the next one resumes. The switch is one transaction that computes nothing. An encoder's vectors stay in the
cache, so that switching back to it computes nothing either.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.index_report import IndexProgress, OnProgress
from speckit_memory.memory.models.embedders.protocol import Embedder, FingerprintedEmbedder, TokenModel
from speckit_memory.memory.models.passage_vectors import GROUP, TITLE_REPEATS, texts_of, title_repeats
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import embedding_cache, embedding_models, vectors
from speckit_memory.memory.store.tables.vectors.embedding_models import LEASE_SECONDS, Build, ModelFingerprint
from speckit_memory.memory.store.tables.words import token_sets

MOVED_AT_ONCE = 1_000
"""Passages whose vectors are held in memory at a time during the switch."""


@dataclass(frozen=True, slots=True)
class EmbeddingRun:
    """The result of a build: `embedded` vectors were computed and `cached` ones reused, of `total` passages."""

    stamp: ModelFingerprint
    embedded: int
    cached: int
    total: int


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A switch of models: the ids before ("" for none) and after, and how many memories have pending vectors."""

    before: str
    after: str
    pending: int


def stamp(embedder: Embedder) -> ModelFingerprint:
    """Return the identity of an embedder; it may ask a service for the dimensions. Raises E001."""
    model_id = embedder.model_id
    found = embedder.provenance if isinstance(embedder, FingerprintedEmbedder) else None
    name, revision, pooling = found or (model_id, "unknown", "unknown")
    return ModelFingerprint(model_id, name, revision, pooling, embedder.dimensions)


def build(database: Database, embedder: Embedder, now: float, progress: OnProgress | None = None) -> EmbeddingRun:
    """Compute the vectors of all passages by this model that are not in the cache; nothing else changes.

    Args:
        database: The store.
        embedder: The model.
        now: The start time, in epoch seconds.
        progress: Called after each batch.

    Raises:
        SpeckitError: E022 while another process builds vectors; E001 if the model fails. Finished batches stay.
    """
    made = stamp(embedder)
    work = _Building(database, made, embedding_models.new_holder())
    work.begin(now)
    embedded = cached = 0
    try:
        # Each batch is its own short transaction, so searches and writers are never blocked for long.
        for ids in _pages(database.reader(), GROUP):
            # Keyed by the content hash of the text embedded: equal passages are computed once in a page.
            texts = _texts(database.reader(), ids, title_repeats(embedder))
            known = embedding_cache.lookup(database.reader(), made.model_id, set(texts))
            missing = {key: text for key, text in texts.items() if key not in known}
            found: dict[str, np.ndarray] = {}
            if missing:
                found = dict(zip(missing, embedder.embed_documents(list(missing.values())), strict=True))
            embedded, cached = embedded + len(found), cached + len(known)
            work.go_on(found, known, len(ids))
            if progress:
                progress(IndexProgress(work.done, max(work.done, work.total), made.name))
    finally:
        work.end()
    return EmbeddingRun(made, embedded, cached, work.done)


def change(
    database: Database, made: ModelFingerprint, repeats: int, token_model_id: str, now: float, *, chosen: bool
) -> ModelChange:
    """Replace the vectors in use by the cached ones of a model, in one transaction.

    Args:
        database: The store.
        made: The identity of the model.
        repeats: How often the title is repeated for this model.
        token_model_id: The id of its token model; if that changes too, all passages become pending.
        now: The time, in epoch seconds.
        chosen: Record the model as the user's choice, which later runs use.

    Returns:
        The switch; passages without a cached vector are pending afterwards.
    """
    with database.write() as txn, txn.with_small_cache():
        connection = txn.connection
        before = get_meta(connection, vectors.MODEL) or ""
        if before and before != made.model_id:
            _exchange(txn, made, repeats, token_model_id)
            embedding_models.note_previous(txn, before)
        embedding_models.note(txn, made, now)
        if chosen:
            embedding_models.choose(txn, made.name)
        embedding_models.end_build(txn)
    return ModelChange(before, made.model_id, reader.statistics(database.reader()).pending_embeddings)


def _exchange(txn: Transaction, made: ModelFingerprint, repeats: int, token_model_id: str) -> None:
    connection = txn.connection
    if get_meta(connection, token_sets.MODEL) not in (None, token_model_id):
        vectors.forget_all(txn)  # tokens must be recomputed too: every passage becomes pending
        return
    # Passages that were pending before stay so: their tokens are missing as well.
    waiting = {chunk for (chunk,) in rows(connection, "SELECT id FROM chunks WHERE vector = 'pending'")}
    # All vectors go at once: a scan never sees rows of two models in one space.
    with txn.seeing_all():
        vectors.drop(txn)
    for ids in _pages(connection, MOVED_AT_ONCE):
        keys = _keys(connection, ids, repeats)
        # found: content hash to (dims,) vector; a passage without one stays pending and is embedded later.
        found = embedding_cache.lookup(connection, made.model_id, set(keys.values()))
        there = [chunk for chunk in ids if chunk not in waiting and keys.get(chunk) in found]
        if there:
            vectors.insert(txn, there, np.stack([found[keys[chunk]] for chunk in there]), made.model_id)
    if repeats == TITLE_REPEATS:  # vectors pooled of tokens, which the cache held for the change alone
        connection.execute("DELETE FROM embedding_cache WHERE model_id = ?", (made.model_id,))
    # After the inserts above: what is still pending gets its vector and its tokens together later, so old tokens go.
    connection.execute("DELETE FROM chunk_tokens WHERE chunk_id IN (SELECT id FROM chunks WHERE vector = 'pending')")
    # chunk_count > 0: a memory without passages keeps its status.
    connection.execute(
        "UPDATE memories SET embedding_status = 'done' WHERE chunk_count > 0 AND NOT EXISTS "
        "(SELECT 1 FROM chunks WHERE memory_id = memories.id AND vector = 'pending')"
    )


class _Building:
    """The record of a build in progress, visible to every process of the store."""

    def __init__(self, database: Database, made: ModelFingerprint, holder: str) -> None:
        self._database, self._made, self._holder = database, made, holder
        self.done = self.total = 0

    def begin(self, now: float) -> None:
        """Take the lease. Raises E022 if a live process holds it."""
        with self._database.write() as txn:
            found = embedding_models.build(txn.connection)
            if found and embedding_models.at_work(found, time.time()):
                raise SpeckitError(
                    "E022",
                    f"another process builds the vectors of {found.name}: {found.done:,} of {found.total:,} passages",
                    hint="Only one process can build vectors at a time.",
                    actions=("wait until it has finished", "look at `speckit-memory model list`"),
                )
            self.total = value(txn.connection, "SELECT count(*) FROM chunks") or 0
            embedding_models.note(txn, self._made, now)
            embedding_models.note_build(txn, self._state())

    def go_on(self, computed: dict[str, np.ndarray], used: dict[str, np.ndarray], passages: int) -> None:
        """Store a batch of vectors and record the progress."""
        self.done += passages
        now = time.time()
        with self._database.write() as txn:
            embedding_cache.store(txn, self._made.model_id, computed, now)
            embedding_cache.touch(txn, self._made.model_id, used, now)
            embedding_models.note_build(txn, self._state())

    def end(self) -> None:
        """Release the lease; the progress stays recorded until the vectors are in use."""
        with suppress(SpeckitError), self._database.write() as txn:
            embedding_models.note_build(txn, self._state()._replace(until=0.0))

    def _state(self) -> Build:
        return Build(
            self._made.model_id,
            self._made.name,
            self.done,
            max(self.total, self.done),
            self._holder,
            time.time() + LEASE_SECONDS,
        )


def _pages(connection: Connection, size: int) -> Iterator[list[int]]:
    """Yield the ids of all passages in ascending pages of `size`; passages written meanwhile come last."""
    last = -1
    while found := [
        chunk for (chunk,) in rows(connection, "SELECT id FROM chunks WHERE id > ? ORDER BY id LIMIT ?", (last, size))
    ]:
        yield found
        last = found[-1]


def _texts(connection: Connection, ids: Sequence[int], repeats: int) -> dict[str, str]:
    """Return the text to embed of each passage, by its hash."""
    return {sha256(text.encode()).hexdigest(): text for text in texts_of(connection, ids, repeats).values()}


def _keys(connection: Connection, ids: Sequence[int], repeats: int) -> dict[int, str]:
    """Return the hash of the text to embed of each passage, by chunk id."""
    embedded = texts_of(connection, ids, repeats)
    return {chunk: sha256(text.encode()).hexdigest() for chunk, text in embedded.items()}


def token_model_of(embedder: Embedder) -> str:
    """Return the token model id of an embedder, "" if it has none."""
    return embedder.token_model_id if isinstance(embedder, TokenModel) else ""
