"""Where the gate on saving is asked: before and after one document is saved, and after a run of the index (M6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake import interrupted
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.intake.prediction_error import MOST_PASSAGES, Verdict, act, judge
from speckit_memory.memory.intake.reconsidering import reconsider
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.passage_vectors import document_texts, embed
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.reading import comparing, reader
from speckit_memory.memory.store.reading.reader import KnownFile
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors

MOST_JUDGED = 20
"""New documents of one run of the index that are compared with the memories there are: each costs four searches."""


def of_path(
    document: Document, known: Mapping[str, KnownFile], duplicates: Sequence[str], *, dry_run: bool = False
) -> Verdict | None:
    """The verdict that needs no comparison: an edit of the same path, or the content of another memory."""
    stored = known.get(document.key)
    if stored is not None:
        same = stored.content_hash == document.content_hash and stored.restored is None
        brought = "would be" if dry_run else "was"
        done = "nothing: it says the same" if same else f"its own memory {brought} brought up to date"
        return Verdict("update", key=document.key, id=stored.id, done=done)
    if duplicates:
        key = duplicates[0]
        return Verdict("duplicate", "duplicate", key, known[key].id, 1.0, done=f"nothing: {key} has the same content")
    return None


def foreseen(connection: Connection, embedder: Embedder | None, document: Document, now: float) -> Verdict:
    """The verdict on a document that is not stored."""
    rows = np.empty((0, 0), np.float32)
    if embedder is not None and get_meta(connection, vectors.MODEL) == embedder.model_id:
        rows = embed(connection, embedder, document_texts(document, embedder)).rows
    return judge(connection, document.body, rows, None, now)


def judged(database: Database, text: str, own_id: int, now: float, *, acting: bool) -> Verdict:
    """The verdict on a document of this text that has just been stored, and what was done about it.

    What cannot be done now is done by background work: see `interrupted`.
    """
    connection = database.reader()
    own = comparing.vectors_of(connection, own_id, MOST_PASSAGES)
    verdict = judge(connection, text, own, own_id, now)
    if not acting:
        return replace(verdict, done=verdict.done or "nothing")
    if not len(own):  # its vectors are to come
        return verdict
    try:
        with database.write() as txn:
            done = act(txn, verdict, own_id, now)
            interrupted.settle(txn, own_id)
    except SpeckitError as error:
        return replace(verdict, done=f"nothing yet, background work will: {error.problems[0].message}")
    return replace(verdict, done=done)


def changed(database: Database, verdict: Verdict, now: float) -> Verdict:
    """The verdict on a document that was saved anew, with what holds no longer of what was said about it before."""
    told = reconsider(database, [verdict.key], now).get(verdict.key, [])
    return replace(verdict, done="; ".join([verdict.done, *told]))


def compare(
    database: Database, embedder: Embedder | None, known: Mapping[str, KnownFile], report: IndexReport, now: float
) -> None:
    """Tells what the new documents of a run are to what was there before it; nothing is done about it. What documents
    that changed were said to supersede, or to be superseded by, is looked at anew.

    Many at once are not compared: which of them came first is not known, and a first run would compare all.
    """
    for key, lines in reconsider(database, report.updated, now).items():
        report.verdicts[key] = Verdict("update", key=key, done="; ".join(lines))
    if not known or embedder is None or not 0 < len(report.created) <= MOST_JUDGED:
        return
    connection = database.reader()
    for key in report.created:
        memory = reader.get_memory(connection, key)
        own = comparing.vectors_of(connection, memory.id, MOST_PASSAGES)
        verdict = judge(connection, reader.body(connection, memory.id), own, memory.id, now)
        if verdict.kind != "create":
            report.verdicts[key] = replace(verdict, done="nothing: an index run tells, memory_save acts")
