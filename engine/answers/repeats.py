"""Rows of an answer whose text the session has been sent already (feature A2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speckit_memory.engine.answers.results import ResultRow
from speckit_memory.memory.store.read_model.facts.sessions import digest
from speckit_memory.pipeline.ports import Store

SENT_BEFORE = "sent_before"
"""The note of a step about a row: the digests of the texts of its memory that were sent."""


def in_line(row: ResultRow, sent: Collection[str], store: Store, action: str) -> ResultRow:
    """The row, or a line in its place if what it shows was sent: these very words, all of its passage, or all of its
    memory. With the `action` "mark" its text stays."""
    shown = row.content or row.snippet
    if not shown or not (digest(row.id, shown) in sent or (not row.content and _covered(row, sent, store))):
        return row
    place = f"{row.key}:{row.first_line}-{row.last_line}" if row.first_line else row.key
    marked = replace(row, repeated=True, notes={"already_sent": place, **row.notes})
    return marked if action == "mark" else replace(marked, snippet="", passage="", content="")


def _covered(row: ResultRow, sent: Collection[str], store: Store) -> bool:
    return digest(row.id, row.passage) in sent or digest(row.id, whole(row.id, store)) in sent


def whole(memory: int, store: Store) -> str:
    """The text of a memory as it is sent to whoever asks for all of it."""
    return store.passages.body(memory).strip("\n")


def counted(rows: Sequence[ResultRow], policy: Mapping[str, Any]) -> dict[str, int]:
    """How many rows are repeats, and about how many tokens that saved."""
    repeats = sum(row.repeated for row in rows)
    return {
        "already_sent": repeats,
        "tokens_saved": 0 if policy["action"] == "mark" else repeats * policy["tokens_each"],
    }
