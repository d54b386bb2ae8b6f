"""Writes memories. A memory changes with all its rows or not at all; every change is logged.

Functions take an open `Transaction`, which several calls can share. `put_document` rolls back its own rows when it
fails, so that the caller can continue with the next document of a batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows, texts
from speckit_memory.memory.store.file.schema.facts import LIVING_ATTRIBUTES
from speckit_memory.memory.store.records import EXPIRES, UNKNOWN_TIME, Document, Tier
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import link_targets
from speckit_memory.memory.store.tables.memories import absences, archivals, judgements, restorations
from speckit_memory.memory.store.tables.memories.promotions import settle, tier_in_force
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface, token_sets
from speckit_memory.memory.store.writing import near_duplicates
from speckit_memory.memory.store.writing.rows import DocumentEntry, insert, new_places, passages_placed
from speckit_memory.pipeline.ports import Tokens, Vectors

PIECE = 100_000
"""Number of characters of a long text that are hashed at a time."""
UNWRITABLE = (SpeckitError, ValueError, TypeError, OverflowError)
"""Errors for a single document that cannot be written, while others can."""


class Put(NamedTuple):
    """The outcome of writing a document: the id of its memory, and whether it was created, updated or unchanged."""

    id: int
    outcome: Literal["created", "updated", "unchanged"]


def put_document(
    txn: Transaction,
    document: Document,
    vectors_of_chunks: Vectors | None,
    now: float,
    model_id: str | None,
    tokens_of_chunks: Sequence[Tokens] | None = None,
) -> Put:
    """Writes a document as the memory with its key: attributes, texts, passages, words, vectors, triggers and links.

    A key keeps its id, its time of creation, its learned triggers and everything learned from use. An unchanged
    document only updates `mtime_ns`, and its vectors complete a pending embedding.

    Args:
        txn: The transaction.
        document: The document; times of 0 mean `now`, None an unknown time.
        vectors_of_chunks: Unit or zero vectors, shape (chunks, dimensions); None leaves the embedding pending.
        now: The time, in epoch seconds.
        model_id: The model that made the vectors.
        tokens_of_chunks: Distinct ascending tokens of each chunk, if the model has tokens.

    Returns:
        The id of the memory and the outcome.

    Raises:
        SpeckitError: E002 for invalid vectors, before anything is written.
    """
    return _insert(txn, DocumentEntry(document, vectors_of_chunks, tokens_of_chunks), now, model_id)


def delete_memories(txn: Transaction, ids: Sequence[int]) -> int:
    """Deletes memories with all their rows; returns their number, without unknown ids."""
    chosen = integers(ids)
    going = rows(
        txn.connection,
        "SELECT id, key, folder FROM memories WHERE id IN (SELECT value FROM carray(?)) ORDER BY id",
        (chosen,),
    )
    found = [memory_id for memory_id, _, _ in going]
    neighbours = rows(
        txn.connection,
        "SELECT target_id FROM causal_edges WHERE source_id IN (SELECT value FROM carray(?1)) UNION "
        "SELECT source_id FROM causal_edges WHERE target_id IN (SELECT value FROM carray(?1))",
        (chosen,),
    )
    with txn.part():
        for memory_id in found:
            delete_index_rows(txn, memory_id)
        # Texts, chunks, triggers, links and edges are deleted by their foreign keys (ON DELETE CASCADE).
        txn.connection.execute("DELETE FROM memories WHERE id IN (SELECT value FROM carray(?))", (chosen,))
        changes.record(txn, [row[0] for row in neighbours], "edges")
        changes.record(txn, found, "delete")
        link_targets.note_memories(txn, [row[0] for row in neighbours])
        link_targets.note_keys(txn, [key for _, key, _ in going])
        near_duplicates.mark_uncounted(txn, {folder for _, _, folder in going})
    return len(found)


def delete_index_rows(txn: Transaction, memory_id: int) -> None:
    """Deletes the rows of a memory in virtual tables, which have no foreign keys."""
    vectors.delete_of_memory(txn, memory_id)
    fulltext.delete(txn, memory_id)
    surface.delete(txn, memory_id)


def put_aside(txn: Transaction, ids: Sequence[int], now: float) -> list[int]:
    """Marks memories, whose files are missing, as absent from `now` (epoch seconds) on, keeping all their rows; returns
    those that were present before."""
    begun = absences.begin(txn, ids, now)
    _note_presence(txn, begun)
    return begun


def take_up(txn: Transaction, ids: Sequence[int]) -> list[int]:
    """Marks absent memories as present again, unchanged; returns those that were absent."""
    ended = absences.end(txn, ids)
    _note_presence(txn, ended)
    return ended


def _note_presence(txn: Transaction, ids: Sequence[int]) -> None:
    if not ids:
        return
    changes.record(txn, ids, "attributes")  # not "put": their documents did not change
    set_meta(txn, absences.CHANGED, str(changes.latest(txn.connection)))
    near_duplicates.mark_uncounted(txn, near_duplicates.folders_of(txn.connection, ids))


def set_vectors(
    txn: Transaction,
    vectors_by_chunk: Mapping[int, Vectors],
    model_id: str,
    tokens_by_chunk: Mapping[int, Tokens] | None = None,
) -> int:
    """Completes pending embeddings. Chunks that were deleted, or have a vector already, are skipped.

    Args:
        txn: The transaction.
        vectors_by_chunk: Unit or zero vectors, shape (dimensions,), by chunk id. The caller ensures that the text of
            each chunk is still the embedded one.
        model_id: The model that made the vectors.
        tokens_by_chunk: Distinct ascending tokens by chunk id, if the model has tokens.

    Returns:
        The number of completed chunks.

    Raises:
        SpeckitError: E002 for invalid vectors.
    """
    if not vectors_by_chunk:
        return 0
    if len({vector.shape for vector in vectors_by_chunk.values()}) > 1:
        raise SpeckitError("E002", "the vectors have different lengths")
    vectors.validate(txn.connection, np.stack(list(vectors_by_chunk.values())), len(vectors_by_chunk), model_id)
    waiting = rows(
        txn.connection,
        "SELECT id, memory_id FROM chunks WHERE vector = 'pending' AND id IN (SELECT value FROM carray(?)) ORDER BY id",
        (integers(list(vectors_by_chunk)),),
    )
    if not waiting:
        return 0
    chunks, memories = [chunk for chunk, _ in waiting], sorted({memory_id for _, memory_id in waiting})
    with txn.part():
        vectors.insert(txn, chunks, np.stack([vectors_by_chunk[chunk] for chunk in chunks]), model_id)
        if tokens_by_chunk is not None:
            token_sets.insert(txn, chunks, [tokens_by_chunk[chunk] for chunk in chunks])
        txn.connection.execute(
            "UPDATE memories SET embedding_status = 'done' WHERE id IN (SELECT value FROM carray(?)) AND NOT EXISTS "
            "(SELECT 1 FROM chunks WHERE memory_id = memories.id AND vector = 'pending')",
            (integers(memories),),
        )
        changes.record(txn, memories, "put")
    return len(chunks)


def touch_mtime(txn: Transaction, mtimes: Mapping[int, int]) -> None:
    """Updates the mtimes (ns) of files with unchanged content, by memory id. The change is not logged."""
    txn.connection.executemany(
        "UPDATE memories SET mtime_ns = ? WHERE id = ?",
        [(_storable(mtime), memory_id) for memory_id, mtime in mtimes.items()],
    )


def note_ctimes(txn: Transaction, ctimes: Mapping[str, int]) -> None:
    """Updates the ctimes (ns) of files, by key. The change is not logged."""
    txn.connection.executemany(
        "UPDATE memories SET ctime_ns = ? WHERE key = ?", [(_storable(ctime), key) for key, ctime in ctimes.items()]
    )


def set_attribute(txn: Transaction, name: str, values: Mapping[int, float | int | None]) -> None:
    """Sets one of `LIVING_ATTRIBUTES`, by memory id. Raises E033 for another name."""
    if name not in LIVING_ATTRIBUTES:
        raise SpeckitError(
            "E033",
            f"'{name}' is not an attribute that may be set",
            hint=f"accepted: {', '.join(sorted(LIVING_ATTRIBUTES))}",
        )
    with txn.part():
        txn.connection.executemany(
            f"UPDATE memories SET {name} = ? WHERE id = ?", [(value, memory_id) for memory_id, value in values.items()]
        )
        changes.record(txn, sorted(values), "attributes")


class Use(NamedTuple):
    """Number of uses of a memory, and the time of the last one (epoch seconds)."""

    times: int
    last: float


def count_uses(txn: Transaction, uses: Mapping[int, Use]) -> None:
    """Adds uses to the counts of memories, by memory id; unknown ids are ignored."""
    with txn.part():
        for memory_id, use in uses.items():
            txn.connection.execute(
                "UPDATE memories SET access_count = access_count + ?1, "
                "last_accessed = max(coalesce(last_accessed, ?2), ?2) WHERE id = ?3",
                (*use, memory_id),
            )
        changes.record(txn, sorted(uses), "attributes")


def fingerprint(document: Document) -> bytes:
    """A SHA-256 digest of a document without its times: equal for documents that would be stored alike."""
    before = [document.key, document.title]
    after = [
        document.content_hash,
        document.folder,
        document.tier,
        document.context_type,
        document.document_type,
        document.memory_type,
        document.spec_level,
        document.triggers,
        [(link.relation, link.target, link.strength, link.evidence, link.reverse) for link in document.links],
    ]
    chunks = ([c.text, c.heading, c.anchor, c.first_line, c.last_line, " ".join(c.tokens)] for c in document.chunks)
    last = [
        document.title_tokens,
        document.trigger_tokens,
        document.path_tokens,
        document.importance_weight,
        sorted(document.extra.items()),
    ]
    # The digest of one JSON list, serialised piece by piece so that no second copy of a long text is built.
    digest = hashlib.sha256(json.dumps(before)[:-1].encode() + b', "')
    for start in range(0, len(document.body), PIECE):
        digest.update(json.dumps(document.body[start : start + PIECE])[1:-1].encode())
    digest.update(b'", ' + json.dumps(after)[1:-1].encode() + b", [")
    for number, chunk in enumerate(chunks):
        digest.update(b", " * (number > 0) + json.dumps(chunk).encode())
    digest.update(b"], " + json.dumps(last)[1:].encode())
    return digest.digest()


def put_documents(
    txn: Transaction, entries: Sequence[DocumentEntry], now: float, model_id: str | None
) -> list[Put | Exception]:
    """Writes documents in order, each as `put_document` does.

    Args:
        txn: The transaction.
        entries: The documents with their vectors and tokens.
        now: The time, in epoch seconds.
        model_id: The model that made the vectors.

    Returns:
        For each document its outcome, or the error of one that cannot be written and leaves nothing behind: a
        `SpeckitError`, or ValueError, TypeError or OverflowError for values that SQLite cannot hold.
    """
    outcomes: list[Put | Exception] = []
    for new, group in _runs(txn, entries):
        if new and len(group) > 1:
            try:
                with txn.part():
                    _validate(txn, group, model_id)
                    outcomes += _add(txn, group, now, model_id or "")
                continue
            except UNWRITABLE:  # some document failed: write them one by one to find out which
                pass
        for entry in group:
            try:
                put = _insert(txn, entry, now, model_id)
            except UNWRITABLE as error:
                outcomes.append(error)
            else:
                outcomes.append(put)
    return outcomes


def _runs(txn: Transaction, entries: Sequence[DocumentEntry]) -> Iterator[tuple[bool, list[DocumentEntry]]]:
    """Splits entries into runs of consecutive ones that are all new or all known."""
    keys = texts([entry.document.key for entry in entries])
    found = rows(txn.connection, "SELECT key FROM memories WHERE key IN (SELECT value FROM carray(?))", (keys,))
    met = {key for (key,) in found}
    labelled = []
    for entry in entries:
        labelled.append((entry.document.key not in met, entry))
        # a key that occurs twice in the batch is known from its second document on
        met.add(entry.document.key)
    # groupby keeps the order of the batch: only neighbours are joined
    for new, group in groupby(labelled, key=itemgetter(0)):
        yield new, [entry for _, entry in group]


def _validate(txn: Transaction, entries: Sequence[DocumentEntry], model_id: str | None) -> None:
    """Raises E002 if any entry has invalid vectors."""
    given = [(entry.vectors, len(entry.document.chunks)) for entry in entries if entry.vectors is not None]
    if any(matrix.ndim != 2 or matrix.shape[0] != count for matrix, count in given):
        raise SpeckitError("E002", "an entry does not have one vector per passage")
    matrices = [matrix for matrix, count in given if count]
    if matrices:
        matrix = np.concatenate(matrices)
        vectors.validate(txn.connection, matrix, len(matrix), model_id)


def _insert(txn: Transaction, entry: DocumentEntry, now: float, model_id: str | None) -> Put:
    document = entry.document
    if entry.vectors is not None:
        vectors.validate(txn.connection, entry.vectors, len(document.chunks), model_id)
    model = model_id or ""
    with txn.part():
        known = txn.connection.execute(
            "SELECT id, fingerprint, embedding_status, content_hash, tier FROM memories WHERE key = ?", (document.key,)
        ).fetchone()
        if known is None:
            return _add(txn, [entry], now, model)[0]
        # The document exists: its memory is neither absent nor held at a checkpoint's state any longer.
        take_up(txn, [known[0]])
        restorations.settle(txn, [known[0]])
        digest = entry.fingerprint or fingerprint(document)
        # Unchanged document: at most its tier, mtime or pending vectors are updated.
        if known[1] == digest:
            matrix = entry.vectors if known[2] == "pending" else None
            settled = settle(txn, known[0], known[4], document.tier)
            kept = _keep(txn, known[0], document, matrix, model, entry.tokens)
            return kept._replace(outcome="updated") if settled else kept
        return _replace(txn, known[0], entry, digest, now, model, edited=known[3] != document.content_hash)


def _add(txn: Transaction, entries: Sequence[DocumentEntry], now: float, model_id: str) -> list[Put]:
    """Adds documents whose keys are distinct and not stored."""
    placed = new_places(txn, entries)
    txn.connection.executemany(
        "INSERT INTO memories (title, folder, tier, context_type, document_type, memory_type, spec_level, "
        "content_hash, fingerprint, characters, chunk_count, embedding_status, mtime_ns, updated_at, "
        "importance_weight, id, key, created_at, expires_at, created_by) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                *_facts(each.entry, each.document.tier, each.entry.fingerprint or fingerprint(each.document), now),
                each.id,
                each.document.key,
                _time(each.document.created_at, now),
                each.document.expires_at,
                txn.principal,
            )
            for each in placed
        ),
    )
    insert(txn, placed, model_id, now)
    ids = [each.id for each in placed]
    restorations.settle_removed(txn, [each.document.key for each in placed])
    changes.record(txn, ids, "put")
    link_targets.note_memories(txn, ids)
    link_targets.note_keys(txn, [each.document.key for each in placed])
    near_duplicates.mark_uncounted(txn, dict.fromkeys(each.document.folder for each in placed))
    return [Put(memory_id, "created") for memory_id in ids]


def _replace(
    txn: Transaction, memory_id: int, entry: DocumentEntry, digest: bytes, now: float, model_id: str, *, edited: bool
) -> Put:
    """Replaces the rows of a memory; an archived one is restored if its document was `edited`."""
    connection = txn.connection
    before = near_duplicates.duplicate_inputs(connection, memory_id)
    ended = archivals.declared_end(txn, memory_id)
    _clear(txn, memory_id)
    tier = tier_in_force(connection, memory_id, entry.document.tier)
    judgements.declare(txn, memory_id, entry.document.tier)
    connection.execute(
        "UPDATE memories SET title = ?, folder = ?, tier = ?, context_type = ?, document_type = ?, "
        "memory_type = ?, spec_level = ?, content_hash = ?, fingerprint = ?, characters = ?, chunk_count = ?, "
        "embedding_status = ?, mtime_ns = ?, updated_at = ?, importance_weight = ? WHERE id = ?",
        (*_facts(entry, tier, digest, now), memory_id),
    )
    insert(txn, [passages_placed(txn, memory_id, entry)], model_id, now)
    if edited:
        archivals.lift(txn, memory_id)
    # Only a changed expiry in the document overrides the stored one, which a restore may have extended.
    if ended != entry.document.extra.get(EXPIRES):
        archivals.end_at(txn, memory_id, entry.document.expires_at)
    changes.record(txn, [memory_id], "put")
    link_targets.note_memories(txn, [memory_id])
    after = near_duplicates.duplicate_inputs(connection, memory_id)
    if after != before:
        near_duplicates.mark_uncounted(txn, {facts.folder for facts in (before, after) if facts})
    return Put(memory_id, "updated")


def _facts(entry: DocumentEntry, tier: Tier, digest: bytes, now: float) -> tuple[object, ...]:
    """The columns of a row of `memories` except id, key and times of creation and expiry."""
    document = entry.document
    return (
        document.title,
        document.folder,
        tier,
        document.context_type,
        document.document_type,
        document.memory_type,
        document.spec_level,
        document.content_hash,
        digest,
        len(document.body),
        len(document.chunks),
        "pending" if entry.vectors is None and document.chunks else "done",
        _storable(document.mtime_ns),
        _time(document.updated_at, now),
        document.importance_weight,
    )


def _storable(mtime_ns: int | None) -> int | None:
    """An mtime limited to 64 bits. One that does not fit never equals the file's, so that every run reads the file."""
    return None if mtime_ns is None else max(-(2**63), min(mtime_ns, 2**63 - 1))


def _time(told: float | None, now: float) -> float:
    """A time as stored: `UNKNOWN_TIME` for None, `now` for 0."""
    return UNKNOWN_TIME if told is None else told or now


def _keep(
    txn: Transaction,
    memory_id: int,
    document: Document,
    matrix: Vectors | None,
    model_id: str,
    tokens: Sequence[Tokens] | None,
) -> Put:
    if document.mtime_ns is not None:
        touch_mtime(txn, {memory_id: document.mtime_ns})
    if matrix is None:
        return Put(memory_id, "unchanged")
    found = rows(txn.connection, "SELECT id FROM chunks WHERE memory_id = ? ORDER BY ordinal", (memory_id,))
    chunks = [chunk_id for (chunk_id,) in found]
    tokens_by_chunk = None if tokens is None else dict(zip(chunks, tokens, strict=True))
    set_vectors(txn, dict(zip(chunks, matrix, strict=True)), model_id, tokens_by_chunk)
    return Put(memory_id, "updated")


def _clear(txn: Transaction, memory_id: int) -> None:
    """Deletes the rows that come from a memory's document, before it is written again."""
    delete_index_rows(txn, memory_id)
    for table in ("texts", "chunks", "token_counts", "declared_links"):
        txn.connection.execute(f"DELETE FROM {table} WHERE memory_id = ?", (memory_id,))
    txn.connection.execute("DELETE FROM triggers WHERE memory_id = ? AND source = 'authored'", (memory_id,))
