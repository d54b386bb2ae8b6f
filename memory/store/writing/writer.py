"""Writing memories. A memory changes with all its rows or not at all; every change is logged.

Functions take the open `Transaction`; several may share one. `put_document` undoes its own rows when it fails, so that
a caller may go on with the next document of a batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.facts import LIVING_ATTRIBUTES
from speckit_memory.memory.store.file.queries import integers, rows, value
from speckit_memory.memory.store.records import UNKNOWN_TIME, Document
from speckit_memory.memory.store.tables import changes, fulltext, link_targets, token_sets, vectors
from speckit_memory.memory.store.tables.phrases import normalised_phrase
from speckit_memory.memory.store.tables.promotions import tier_in_force
from speckit_memory.memory.store.writing import near_duplicates
from speckit_memory.pipeline.ports import Tokens, Vectors

PIECE = 100_000
"""Characters of a long text that are digested at a time."""


class Put(NamedTuple):
    """What became of a document: the id of its memory, and whether that was made, changed or left alone."""

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

    `vectors_of_chunks` has one unit or zero row per chunk, shape (chunks, dimensions), made by the model `model_id`
    from the distinct ascending `tokens_of_chunks`, if it is a model of tokens; None leaves the embedding pending. A key
    keeps its id, its time of creation, its learned triggers and everything learned from use. An equal document is left
    alone, except that its `mtime_ns` is noted and that vectors complete a pending embedding. `created_at` and
    `updated_at` of 0 stand for `now`, None for an unknown time. Raises E002 for unusable vectors, before anything is
    written.
    """
    if vectors_of_chunks is not None:
        vectors.validate(txn.connection, vectors_of_chunks, len(document.chunks), model_id)
    with txn.part():
        return _put(txn, document, vectors_of_chunks, now, model_id or "", tokens_of_chunks)


def delete_memories(txn: Transaction, ids: Sequence[int]) -> int:
    """Removes memories with every row that belongs to them; returns how many there were, unknown ids not counted."""
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
            vectors.delete_of_memory(txn, memory_id)
            fulltext.delete(txn, memory_id)
        # Texts, chunks, triggers, links and edges follow by their foreign keys.
        txn.connection.execute("DELETE FROM memories WHERE id IN (SELECT value FROM carray(?))", (chosen,))
        changes.record(txn, [row[0] for row in neighbours], "edges")
        changes.record(txn, found, "delete")
        link_targets.note_memories(txn, [row[0] for row in neighbours])
        link_targets.note_keys(txn, [key for _, key, _ in going])
        near_duplicates.mark_uncounted(txn, {folder for _, _, folder in going})
    return len(found)


def set_vectors(
    txn: Transaction,
    vectors_by_chunk: Mapping[int, Vectors],
    model_id: str,
    tokens_by_chunk: Mapping[int, Tokens] | None = None,
) -> None:
    """Completes pending embeddings: one unit or zero vector of shape (dimensions,) per chunk id, with its tokens.

    Chunks that have been replaced since, or have a vector already, are passed over. Raises E002 for unusable vectors.
    """
    if not vectors_by_chunk:
        return
    if len({vector.shape for vector in vectors_by_chunk.values()}) > 1:
        raise SpeckitError("E002", "the vectors have different lengths")
    vectors.validate(txn.connection, np.stack(list(vectors_by_chunk.values())), len(vectors_by_chunk), model_id)
    waiting = rows(
        txn.connection,
        "SELECT id, memory_id FROM chunks WHERE vector = 'pending' AND id IN (SELECT value FROM carray(?)) ORDER BY id",
        (integers(list(vectors_by_chunk)),),
    )
    if not waiting:
        return
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


def touch_mtime(txn: Transaction, mtimes: Mapping[int, int]) -> None:
    """Notes the modification times (ns) of files whose content did not change, by memory id. Not a logged change."""
    txn.connection.executemany(
        "UPDATE memories SET mtime_ns = ? WHERE id = ?",
        [(_storable(mtime), memory_id) for memory_id, mtime in mtimes.items()],
    )


def set_attribute(txn: Transaction, name: str, values: Mapping[int, float | int | None]) -> None:
    """Sets one of `LIVING_ATTRIBUTES` of some memories, by memory id. Raises E033 for another name."""
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
    """How many times a memory was of use, and when last (epoch seconds)."""

    times: int
    last: float


def count_uses(txn: Transaction, uses: Mapping[int, Use]) -> None:
    """Adds uses of memories, by memory id, to those counted before; ids that are not stored (any more) are left out."""
    with txn.part():
        for memory_id, use in uses.items():
            txn.connection.execute(
                "UPDATE memories SET access_count = access_count + ?1, "
                "last_accessed = max(coalesce(last_accessed, ?2), ?2) WHERE id = ?3",
                (*use, memory_id),
            )
        changes.record(txn, sorted(uses), "attributes")


def fingerprint(document: Document) -> bytes:
    """A digest of everything a document says, its times excepted: equal for documents that would be stored alike."""
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
    # The digest of one JSON list, whose long members are written piece by piece.
    digest = hashlib.sha256(json.dumps(before)[:-1].encode() + b', "')
    for start in range(0, len(document.body), PIECE):
        digest.update(json.dumps(document.body[start : start + PIECE])[1:-1].encode())
    digest.update(b'", ' + json.dumps(after)[1:-1].encode() + b", [")
    for number, chunk in enumerate(chunks):
        digest.update(b", " * (number > 0) + json.dumps(chunk).encode())
    digest.update(b"], " + json.dumps(last)[1:].encode())
    return digest.digest()


def _put(
    txn: Transaction,
    document: Document,
    matrix: Vectors | None,
    now: float,
    model_id: str,
    tokens: Sequence[Tokens] | None,
) -> Put:
    connection = txn.connection
    digest = fingerprint(document)
    known = connection.execute(
        "SELECT id, fingerprint, embedding_status FROM memories WHERE key = ?", (document.key,)
    ).fetchone()
    if known is not None and known[1] == digest:
        return _keep(txn, known[0], document, matrix if known[2] == "pending" else None, model_id, tokens)

    memory_id = _draw_ids(txn, 1)[0] if known is None else known[0]
    before = near_duplicates.compared(connection, memory_id)
    if known is not None:
        _clear(txn, memory_id)
    facts = (
        document.title,
        document.folder,
        tier_in_force(connection, memory_id, document.tier),
        document.context_type,
        document.document_type,
        document.memory_type,
        document.spec_level,
        document.content_hash,
        digest,
        len(document.body),
        len(document.chunks),
        "pending" if matrix is None and document.chunks else "done",
        _storable(document.mtime_ns),
        _time(document.updated_at, now),
        document.importance_weight,
    )
    if known is None:
        connection.execute(
            "INSERT INTO memories (title, folder, tier, context_type, document_type, memory_type, spec_level, "
            "content_hash, fingerprint, characters, chunk_count, embedding_status, mtime_ns, updated_at, "
            "importance_weight, id, key, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*facts, memory_id, document.key, _time(document.created_at, now)),
        )
    else:
        connection.execute(
            "UPDATE memories SET title = ?, folder = ?, tier = ?, context_type = ?, document_type = ?, "
            "memory_type = ?, spec_level = ?, content_hash = ?, fingerprint = ?, characters = ?, chunk_count = ?, "
            "embedding_status = ?, mtime_ns = ?, updated_at = ?, importance_weight = ? WHERE id = ?",
            (*facts, memory_id),
        )
    _insert_texts(txn, memory_id, document)
    chunk_ids = _insert_chunks(txn, memory_id, document)
    if matrix is not None:
        vectors.insert(txn, chunk_ids, matrix, model_id)
        if tokens is not None:
            token_sets.insert(txn, chunk_ids, tokens)
    _insert_triggers(txn, memory_id, document.triggers, now)
    connection.executemany(
        "INSERT INTO declared_links (memory_id, ordinal, relation, target, strength, evidence, reverse) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (memory_id, ordinal, link.relation, link.target, link.strength, link.evidence, link.reverse)
            for ordinal, link in enumerate(document.links)
        ],
    )
    changes.record(txn, [memory_id], "put")
    link_targets.note_memories(txn, [memory_id])
    if known is None:
        link_targets.note_keys(txn, [document.key])
    after = near_duplicates.compared(connection, memory_id)
    if after != before:
        near_duplicates.mark_uncounted(txn, {facts.folder for facts in (before, after) if facts})
    return Put(memory_id, "created" if known is None else "updated")


def _storable(mtime_ns: int | None) -> int | None:
    """A time of modification as SQLite holds it. One that does not fit is stored as another, so that the file is read
    again in every run."""
    return None if mtime_ns is None else max(-(2**63), min(mtime_ns, 2**63 - 1))


def _time(told: float | None, now: float) -> float:
    """A time as it is stored: `UNKNOWN_TIME` where nobody knows it."""
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


def _draw_ids(txn: Transaction, count: int) -> range:
    """New ids from the one sequence of memories and chunks; none is ever drawn twice."""
    following: int = value(txn.connection, "UPDATE id_sequence SET next = next + ? RETURNING next", (count,))
    return range(following - count, following)


def _clear(txn: Transaction, memory_id: int) -> None:
    """Removes what a document declared, before it is written anew."""
    vectors.delete_of_memory(txn, memory_id)
    fulltext.delete(txn, memory_id)
    for table in ("texts", "chunks", "declared_links"):
        txn.connection.execute(f"DELETE FROM {table} WHERE memory_id = ?", (memory_id,))
    txn.connection.execute("DELETE FROM triggers WHERE memory_id = ? AND source = 'authored'", (memory_id,))


def _insert_texts(txn: Transaction, memory_id: int, document: Document) -> None:
    title, triggers, path = map(_joined, (document.title_tokens, document.trigger_tokens, document.path_tokens))
    body = bytearray()
    for chunk in document.chunks:
        body += _joined(chunk.tokens).encode() + b" "
    fulltext.insert(txn, memory_id, title, triggers, path, body)
    del body  # of a long text both forms take their room; one at a time is enough
    txn.connection.execute(
        "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)",
        (memory_id, title, triggers, path, json.dumps(document.extra, ensure_ascii=False), document.body),
    )


def _insert_chunks(txn: Transaction, memory_id: int, document: Document) -> Sequence[int]:
    """Adds the passages, with vectors pending, and returns their ids; a single passage has its memory's id."""
    chunks = document.chunks
    ids: Sequence[int] = [memory_id] if len(chunks) == 1 else _draw_ids(txn, len(chunks)) if chunks else []
    txn.connection.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?)",
        (
            (chunk_id, memory_id, ordinal, c.first_line, c.last_line, c.heading, c.anchor, _joined(c.tokens), c.text)
            for ordinal, (chunk_id, c) in enumerate(zip(ids, chunks, strict=True))
        ),
    )
    return ids


def _insert_triggers(txn: Transaction, memory_id: int, phrases: Iterable[str], now: float) -> None:
    """Adds the authored phrases in their order; of phrases that compare equal the first is kept."""
    distinct: dict[str, str] = {}
    for phrase in phrases:
        distinct.setdefault(normalised_phrase(phrase), phrase)
    distinct.pop("", None)
    txn.connection.executemany(
        "INSERT INTO triggers VALUES (?, 'authored', ?, ?, ?, 1.0, ?, NULL)",
        [(memory_id, form, phrase, ordinal, now) for ordinal, (form, phrase) in enumerate(distinct.items())],
    )


def _joined(tokens: Sequence[str]) -> str:
    """Tokens joined by blanks; refuses tokens that would not come apart again."""
    text = " ".join(tokens)
    if tokens and ("" in tokens or text.count(" ") != len(tokens) - 1):
        raise ValueError("an analysed token must not be empty or contain a blank")
    return text
