"""Marks rows of an answer whose text the session was sent before (feature A2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from speckit_memory.engine.answers.results import ResultRow
from speckit_memory.memory.store.tables.sessions.sent_texts import digest
from speckit_memory.pipeline.ports import Store

SENT_BEFORE = "sent_before"
"""The note of a step about a row: digests of the texts of its memory that were sent."""


def shorten_repeated_row(row: ResultRow, sent: Collection[str], store: Store, action: str) -> ResultRow:
    """The row, shortened to a reference if its text was sent before: exactly, as its passage, or as the whole memory.

    Args:
        row: The row.
        sent: Digests of texts of the memory that were sent.
        store: The store.
        action: "mark" keeps the text of a repeated row.
    """
    shown = row.content or row.snippet
    if not shown or not (digest(row.id, shown) in sent or (not row.content and _covered(row, sent, store))):
        return row
    place = f"{row.key}:{row.first_line}-{row.last_line}" if row.first_line else row.key
    marked = replace(row, repeated=True, notes={"already_sent": place, **row.notes})
    return marked if action == "mark" else replace(marked, snippet="", passage="", content="")


def _covered(row: ResultRow, sent: Collection[str], store: Store) -> bool:
    return digest(row.id, row.passage) in sent or digest(row.id, whole_text(row.id, store)) in sent


def whole_text(memory: int, store: Store) -> str:
    """The text of a memory, as sent with `content`."""
    return store.passages.body(memory).strip("\n")


def count_repeated(rows: Sequence[ResultRow], policy: Mapping[str, Any]) -> dict[str, int]:
    """The number of repeated rows, and the approximate number of tokens saved."""
    repeats = sum(row.repeated for row in rows)
    return {
        "already_sent": repeats,
        "tokens_saved": 0 if policy["action"] == "mark" else repeats * policy["tokens_each"],
    }
