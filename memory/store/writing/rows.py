"""Writes the rows of documents in all tables other than `memories`, table by table (feature M1).

Many documents share each statement, since a statement costs more than most rows do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.schema.packing import pack_tokens, split_body
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import fulltext, surface, token_counts, token_sets
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase
from speckit_memory.pipeline.ports import Tokens, Vectors


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document to be written: unit or zero vectors, shape (passages, dimensions), None if not made yet; the distinct
    ascending tokens of each passage, and the document's `writer.fingerprint`, where known."""

    document: Document
    vectors: Vectors | None = None
    tokens: Sequence[Tokens] | None = None
    fingerprint: bytes | None = None


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """An entry with the ids of its memory and its passages."""

    id: int
    chunk_ids: Sequence[int]
    entry: DocumentEntry

    @property
    def document(self) -> Document:
        """The document that becomes this memory."""
        return self.entry.document


def new_places(txn: Transaction, entries: Sequence[DocumentEntry]) -> list[PlacedEntry]:
    """Entries with new ids in order, for each the memory's id and then its passages' (see `passages_placed`)."""
    counts = [len(entry.document.chunks) for entry in entries]
    # A single passage shares its memory's id, so that only longer memories draw ids for passages.
    following = iter(_draw_ids(txn, sum(1 + (count if count > 1 else 0) for count in counts)))
    placed = []
    for entry, count in zip(entries, counts, strict=True):
        memory_id = next(following)
        chunk_ids = [next(following) for _ in range(count)] if count > 1 else [memory_id] * count
        placed.append(PlacedEntry(memory_id, chunk_ids, entry))
    return placed


def passages_placed(txn: Transaction, memory_id: int, entry: DocumentEntry) -> PlacedEntry:
    """An entry for an existing memory with ids for its new passages; a single passage has its memory's id."""
    count = len(entry.document.chunks)
    return PlacedEntry(memory_id, _draw_ids(txn, count) if count > 1 else [memory_id] * count, entry)


def insert(txn: Transaction, placed: Sequence[PlacedEntry], model_id: str, now: float) -> None:
    """Adds the rows of memories in all tables other than `memories`.

    Args:
        txn: The transaction.
        placed: Entries whose memories have a row in `memories` and none elsewhere.
        model_id: The model of the vectors; "" if there are none.
        now: The time of creation of triggers, in epoch seconds.
    """
    connection = txn.connection
    leads: list[str | None] = []
    counts: list[tuple[int, list[token_counts.TokenCount]]] = []
    analysed: list[tuple[int, str, str, str, str]] = []
    texts: list[tuple[object, ...]] = []
    for each in placed:
        document = each.document
        of_passages, rest = split_body(document.body, [chunk.text for chunk in document.chunks])
        leads += of_passages
        title, triggers, path = _fields(document)
        passages = [join_tokens(chunk.tokens) for chunk in document.chunks]
        counts.append((each.id, [token_counts.count_tokens(text) for text in (title, triggers, path, *passages)]))
        analysed.append((each.id, title, triggers, path, " ".join(passages)))
        extra = json.dumps(document.extra, ensure_ascii=False) if document.extra else "{}"
        texts.append((each.id, title, triggers, path, extra, rest, pack_tokens(passages)))
    token_counts.insert(txn, counts)
    fulltext.insert(txn, analysed)
    connection.executemany("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?)", texts)
    states = _insert_vectors(txn, placed, model_id)
    connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _chunks(placed, states, leads))
    surface.insert(txn, ((each.id, each.document.title, each.document.body) for each in placed))
    known = [each for each in placed if each.entry.vectors is not None and each.entry.tokens is not None]
    token_sets.insert(
        txn,
        [chunk_id for each in known for chunk_id in each.chunk_ids],
        [tokens for each in known for tokens in each.entry.tokens or ()],
    )
    connection.executemany(
        "INSERT INTO triggers VALUES (?, 'authored', ?, ?, ?, 1.0, ?, NULL)",
        [
            (each.id, form, phrase, ordinal, now)
            for each in placed
            for ordinal, (form, phrase) in enumerate(_distinct(each.document.triggers))
        ],
    )
    connection.executemany(
        "INSERT INTO declared_links (memory_id, ordinal, relation, target, strength, evidence, reverse) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (each.id, ordinal, link.relation, link.target, link.strength, link.evidence, link.reverse)
            for each in placed
            for ordinal, link in enumerate(each.document.links)
        ],
    )


def join_tokens(tokens: Sequence[str]) -> str:
    """Tokens joined by blanks. Raises ValueError for tokens that could not be split again."""
    text = " ".join(tokens)
    if tokens and ("" in tokens or text.count(" ") != len(tokens) - 1):
        raise ValueError("an analysed token must not be empty or contain a blank")
    return text


def _draw_ids(txn: Transaction, count: int) -> range:
    """Draws new ids from the common sequence of memories and chunks; none is ever used twice."""
    following: int = value(txn.connection, "UPDATE id_sequence SET next = next + ? RETURNING next", (count,))
    return range(following - count, following)


def _fields(document: Document) -> tuple[str, str, str]:
    return join_tokens(document.title_tokens), join_tokens(document.trigger_tokens), join_tokens(document.path_tokens)


def _insert_vectors(txn: Transaction, placed: Sequence[PlacedEntry], model_id: str) -> Iterator[str]:
    """Stores the vectors of entries that have them; returns the state of each passage, in order."""
    having = [each for each in placed if each.entry.vectors is not None and each.chunk_ids]
    stored: Iterator[bool] = iter(())
    if having:
        # matrix: (passages of all these entries, dimensions) float32
        matrix = np.concatenate([each.entry.vectors for each in having if each.entry.vectors is not None])
        ids = [chunk_id for each in having for chunk_id in each.chunk_ids]
        stored = iter(vectors.store(txn, ids, matrix, model_id))
    return (
        "pending" if each.entry.vectors is None else "stored" if next(stored) else "zero"
        for each in placed
        for _ in each.chunk_ids
    )


def _chunks(
    placed: Sequence[PlacedEntry], states: Iterator[str], leads: Iterable[str | None]
) -> Iterator[tuple[object, ...]]:
    lead = iter(leads)
    for each in placed:
        for ordinal, (chunk_id, c) in enumerate(zip(each.chunk_ids, each.document.chunks, strict=True)):
            place = (c.first_line, c.last_line, c.heading, c.anchor)
            yield chunk_id, each.id, ordinal, next(states), *place, c.text, next(lead)


def _distinct(phrases: Iterable[str]) -> Iterable[tuple[str, str]]:
    """The phrases in order, as (normalised form, phrase); of equal forms the first phrase is kept, empty ones are
    dropped."""
    distinct: dict[str, str] = {}
    for phrase in phrases:
        distinct.setdefault(normalised_phrase(phrase), phrase)
    distinct.pop("", None)
    return distinct.items()
