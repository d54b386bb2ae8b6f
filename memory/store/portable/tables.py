"""What of a store is exported: each table and each column is named here once, and a test refuses one that is not.

The tables are those that checkpoints keep. What follows from the text of a document is made anew of the text, so that
a person may edit it; everything else is taken along.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Portable:
    """A table whose rows are exported. `owner` is the column that says to which memory a row belongs, "" for none.

    `without` are columns that are left out, and why; `digests` hold hashes of contents; `numbered` columns hold the id
    of a row of the same table and memory; `clock` are columns of times at which something was learned, and `later`
    those by which, of two rows of one key, the later one is known. Rows whose column has the value that `no_act` says
    are no act of anybody, and their times do not count. Rows of an `ordered` table keep the order in which they were
    made. Only rows for which `where` holds are exported.
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


_NUMBER = {"id": "rows are numbered anew, in the same order"}

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
    Portable("source_paths", without={"root": "a place of this machine; sources go to the workspace that imports"}),
)
"""In the order in which they are written: what is referred to before what refers to it."""

EDGES = "causal_edges"
EDGE = ("target_id", "relation")
"""What tells the edges of a memory apart, and so what the row of another table means that refers to one."""

OF_THE_TEXT = {
    "texts": "the words of a document, made of its text",
    "token_counts": "how many words a text has, counted anew",
    "chunks": "passages, cut anew",
    "chunk_tokens": "tokens of passages, made with their vectors",
    "declared_links": "what a document declares; the edges made of it are exported",
    "absences": "which files are not there; their memories are not exported",
    "restorations": "which files say something else here; the text of the file is exported",
}
"""Tables that checkpoints keep and exports do not, and why. Of `triggers` those that documents declare likewise."""

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
"""Columns of `memories` that follow from a document or its file: they hold for a memory that is made, unless somebody
has edited its text."""
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
"""Columns of `memories` that its life has changed."""
MADE = {
    "id": "another store has numbers of its own; memories keep their order",
    "key": "named beside the record",
    "content_hash": "of the text, which is exported",
    "fingerprint": "a digest of what is made of the text",
    "characters": "counted anew",
    "chunk_count": "passages are cut anew",
    "ctime_ns": "of the file on this machine",
    "embedding_status": "vectors are made anew",
    "interference": "counted anew: how many alike there are where it goes",
}
"""Columns of `memories` that are not exported, and why."""
