"""Runs the prediction-error gate: before and after one document is saved, and after an index run (M6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake import unfinished_saves
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.intake.prediction_error import MOST_PASSAGES, Verdict, act, judge
from speckit_memory.memory.intake.stale_verdicts import reconsider
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.passage_vectors import document_texts, embed
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.reading import comparing, reader
from speckit_memory.memory.store.reading.reader import KnownFile
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors

MOST_JUDGED = 20
"""New documents of an index run up to which they are compared with existing memories: each costs four searches."""


def of_path(
    document: Document, known: Mapping[str, KnownFile], duplicates: Sequence[str], *, dry_run: bool = False
) -> Verdict | None:
    """Return the verdict if no comparison is needed: the key exists already, or another memory has equal content.

    Args:
        document: The document to save.
        known: The files in the store, by key.
        duplicates: The keys of other memories with the same content.
        dry_run: Word the outcome as what would be done.
    """
    stored = known.get(document.key)
    if stored is not None:
        same = stored.content_hash == document.content_hash and stored.restored is None
        brought = "would be" if dry_run else "was"
        done = "nothing: it says the same" if same else f"its memory {brought} updated"
        return Verdict("update", key=document.key, id=stored.id, done=done)
    if duplicates:
        key = duplicates[0]
        return Verdict("duplicate", "duplicate", key, known[key].id, 1.0, done=f"nothing: {key} has the same content")
    return None


def foreseen(connection: Connection, embedder: Embedder | None, document: Document, now: float) -> Verdict:
    """Return the verdict on a document that is not stored.

    Args:
        connection: Reads the store.
        embedder: Embeds the document if it is the store's model; without vectors nothing is compared.
        document: The document.
        now: The time, in epoch seconds.
    """
    rows = np.empty((0, 0), np.float32)
    if embedder is not None and get_meta(connection, vectors.MODEL) == embedder.model_id:
        rows = embed(connection, embedder, document_texts(document, embedder)).rows
    return judge(connection, document.body, rows, None, now)


def judge_saved(database: Database, text: str, own_id: int, now: float, *, acting: bool) -> Verdict:
    """Judge a document that has just been stored, and act on the verdict.

    If that is not possible now, background work does it later: see `unfinished_saves`.

    Args:
        database: The store.
        text: The body of the document.
        own_id: The id of its memory.
        now: The time, in epoch seconds.
        acting: Act on the verdict; otherwise only report it.

    Returns:
        The verdict, with the action taken in `done`.
    """
    connection = database.reader()
    own = comparing.vectors_of(connection, own_id, MOST_PASSAGES)
    verdict = judge(connection, text, own, own_id, now)
    if not acting:
        return replace(verdict, done=verdict.done or "nothing")
    if not len(own):  # no vectors yet
        return verdict
    try:
        with database.write() as txn:
            done = act(txn, verdict, own_id, now)
            unfinished_saves.settle(txn, own_id)
    except SpeckitError as error:
        return replace(verdict, done=f"nothing yet, background work will: {error.problems[0].message}")
    return replace(verdict, done=done)


def judge_updated(database: Database, verdict: Verdict, now: float) -> Verdict:
    """Return the verdict on an updated document, with the earlier verdicts on it that were withdrawn."""
    told = reconsider(database, [verdict.key], now).get(verdict.key, [])
    return replace(verdict, done="; ".join([verdict.done, *told]))


def compare(
    database: Database, embedder: Embedder | None, known: Mapping[str, KnownFile], report: IndexReport, now: float
) -> None:
    """Report verdicts on the new documents of an index run without acting, and reconsider those on changed documents.

    More than `MOST_JUDGED` new documents are not compared: their order is unknown, and a first run would compare all.

    Args:
        database: The store.
        embedder: The model; without one nothing is compared.
        known: The files in the store before the run, by key.
        report: The report of the run, which receives the verdicts.
        now: The time, in epoch seconds.
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
            report.verdicts[key] = replace(verdict, done="nothing: an index run only reports, memory_save acts")
