"""The exported tables and columns of a store. Each table and column is listed here; a test finds those that are not.

The tables are those that checkpoints keep. Rows that follow from the text of a document are not exported but made again
from the text, so that a person may edit it; everything else is exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Portable:
    """A table whose rows are exported. `owner` is the column with the memory of a row, "" for none.

    `without` maps omitted columns to the reason; `digests` columns hold content hashes; `numbered` columns hold the id
    of another row of the same table and memory; `clock` columns hold times at which something was learned; `later`
    columns decide which of two rows with one key is the later one. `no_act` is a column and a value that mark rows
    without a deliberate act, whose times do not count. Rows of an `ordered` table keep their order. Only rows matching
    `where` are exported.
    """

    name: str
    owner: str = ""
    without: Mapping[str, str] = field(default_factory=dict)
    digests: tuple[str, ...] = ()
    numbered: tuple[str, ...] = ()
    clock: tuple[str, ...] = ()
    no_act: tuple[str, str] | None = None
    later: tuple[str, ...] = ()
    ordered: bool = False
    where: str = "1"


_NUMBER = {"id": "rows are renumbered in the same order"}

PORTABLE = (
    Portable("triggers", "memory_id", clock=("created_at",), where="source = 'learned'"),
    Portable("causal_edges", "source_id", _NUMBER),
    Portable(
        "edge_history",
        "source_id",
        _NUMBER,
        numbered=("undoes", "undone_by"),
        clock=("changed_at",),
        no_act=("changed_by", "document"),
    ),
    Portable("edge_uses", "edge_id"),
    Portable("session_uses", "memory_id"),
    Portable("scanned_memories", "memory_id", digests=("content_hash",)),
    Portable(
        "suspected_contradictions", "newer_id", _NUMBER, digests=("newer_hash", "older_hash"), clock=("dismissed_at",)
    ),
    Portable("promotions", "memory_id", clock=("promoted_at",)),
    Portable(
        "judgements", "memory_id", _NUMBER, clock=("judged_at", "undone_at"), no_act=("kind", "used"), ordered=True
    ),
    Portable("archivals", "memory_id", clock=("archived_at", "restored_at")),
    Portable("working_memory", "memory_id"),
    Portable("session_sent", "memory_id", digests=("content_hash",)),
    Portable("former_keys", "memory_id"),
    Portable("selections", "memory_id", clock=("noted_at",)),
    Portable("unlearned", "memory_id", clock=("unlearned_at",)),
    Portable("session_state", later=("last_event",)),
    Portable("task_records", later=("completed_at", "began_at")),
    Portable("source_paths", without={"root": "a path on this machine; sources go to the importing workspace"}),
)
"""In the order of writing: referenced tables before referring ones."""

EDGES = "causal_edges"
EDGE = ("target_id", "relation")
"""Columns that identify an edge of a memory, also in rows of other tables that refer to it."""

OF_THE_TEXT = {
    "texts": "the words of a document, derived from its text",
    "token_counts": "token counts of texts, counted again",
    "chunks": "passages, split again",
    "chunk_tokens": "tokens of passages, made with their vectors",
    "declared_links": "links that documents declare; the edges made from them are exported",
    "absences": "missing files; their memories are not exported",
    "restorations": "files that differ from their memories here; the text of the file is exported",
}
"""Tables that checkpoints keep and exports omit, with the reason. Declared `triggers` are omitted likewise."""

SAID = (
    "title",
    "folder",
    "tier",
    "context_type",
    "document_type",
    "memory_type",
    "spec_level",
    "importance_weight",
    "created_at",
    "updated_at",
    "mtime_ns",
)
"""Columns of `memories` that follow from a document or its file. They are imported unless the text was edited."""
LIVED = (
    "expires_at",
    "last_accessed",
    "access_count",
    "last_review",
    "review_count",
    "stability",
    "difficulty",
    "confidence",
    "validation_count",
)
"""Columns of `memories` that use and judgements change."""
MADE = {
    "id": "each store numbers its memories; their order is kept",
    "key": "exported as the key of the record",
    "content_hash": "hash of the text, which is exported",
    "fingerprint": "digest of what is derived from the text",
    "characters": "counted again",
    "chunk_count": "passages are split again",
    "ctime_ns": "time of the file on this machine",
    "embedding_status": "vectors are made again",
    "interference": "near duplicates, counted again in the importing store",
}
"""Columns of `memories` that are not exported, with the reason."""
