"""The one list of tables, and how each is transferred between stores (feature M14).

Checkpoints, deletions, exports, imports and restores follow it. Every table of the schema has one entry, and every
column of `memories` is named here; a test finds those that are missing. Owners, references and columns are read from
the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows

MEMORIES = "memories"
CHUNKS = "chunks"
EDGES = "causal_edges"
EDGE = ("target_id", "relation")
"""Columns that identify an edge of a memory, also in exported rows that refer to it."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema.

    Checkpoints hold its rows, unless `made` tells how they follow from other tables. Exports hold them too, unless
    `of_text` tells how they follow from the text of a document: such rows are made again, so that a person may edit the
    text.
    """

    name: str
    made: str = ""
    of_text: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Columns that hold ids without a foreign key, with the table of these ids, which may be this one."""
    outlives: bool = False
    """Rows outlive their memory, and are restored without it: no id is used twice, so none means another memory."""
    folder: str = ""
    """Column with a folder, whose checkpoint holds the rows."""
    root: str = ""
    """Column with the root of a workspace: exports hold the rows of their own, without the path, and imports set it."""
    where: str = "1"
    """Condition on exported rows."""
    digests: tuple[str, ...] = ()
    """Columns that hold content hashes."""
    clock: tuple[str, ...] = ()
    """Columns that hold times at which something was learned."""
    no_act: tuple[str, str] | None = None
    """Column and value of rows without a deliberate act, whose times do not count."""
    later: tuple[str, ...] = ()
    """Columns that decide which of two rows with one key is the later one."""
    ordered: bool = False
    """Whether exported rows keep their order."""

    @property
    def exported(self) -> bool:
        """Whether exports hold its rows."""
        return not self.made and not self.of_text and self.name != MEMORIES


TABLES = (
    Table(MEMORIES),
    Table("texts", of_text="the words of a document"),
    Table("token_counts", of_text="token counts of texts"),
    Table(CHUNKS, of_text="passages"),
    Table("chunk_tokens", of_text="tokens of passages, made with their vectors"),
    Table("declared_links", of_text="links that documents declare; the edges made from them are exported"),
    Table("absences", of_text="missing files; their memories are not exported"),
    Table("restorations", of_text="files that differ from their memories here; the text of the file is exported"),
    Table("triggers", clock=("created_at",), where="source = 'learned'"),
    Table(EDGES),
    Table(
        "edge_history",
        ids={"undoes": "edge_history", "undone_by": "edge_history"},
        clock=("changed_at",),
        no_act=("changed_by", "document"),
    ),
    Table("edge_uses"),
    Table("session_uses"),
    Table("scanned_memories", digests=("content_hash",)),
    Table("suspected_contradictions", digests=("newer_hash", "older_hash"), clock=("dismissed_at",)),
    Table("promotions", clock=("promoted_at",)),
    Table("judgements", clock=("judged_at", "undone_at"), no_act=("kind", "used"), ordered=True),
    Table("archivals", clock=("archived_at", "restored_at")),
    Table("working_memory"),
    Table("session_sent", ids={"memory_id": MEMORIES}, outlives=True, digests=("content_hash",)),
    Table("former_keys"),
    Table("selections", ids={"memory_id": MEMORIES}, outlives=True, clock=("noted_at",)),
    Table("unlearned", clock=("unlearned_at",)),
    Table("session_state", later=("last_event",)),
    Table("task_records", folder="folder", later=("completed_at", "began_at")),
    Table("source_paths", root="root"),
    Table("chunk_vectors", made="vectors are copied separately, if both stores have them by the same model"),
    Table("memory_fts", made="full-text rows are made from the tokens of texts and passages"),
    Table("surface_fts", made="rows of words as written are made from titles and texts"),
    Table("meta", made="facts about the whole store, which `copying.copy_facts` copies"),
    Table("store_identity", made="the store's identity; a checkpoint records whose it is"),
    Table("private_ids", made="the ids of private memories, which PostgreSQL keeps itself"),
    Table("id_sequence", made="only increases: no id is used twice"),
    Table("removed_files", made="files whose memories a restore removed; recorded again by a restore"),
    Table("changes", made="the log from which open processes update; a restore adds entries"),
    Table("changed_keys", made="pending work, recorded again by a restore"),
    Table("changed_links", made="pending work, recorded again by a restore"),
    Table("uncounted_folders", made="pending work, recorded again by a restore"),
    Table("embedding_cache", made="vectors of embedded texts: a cache"),
    Table("embedding_models", made="descriptions of model ids; recorded again when texts are embedded"),
    Table("embedding_build", made="vectors that a process is building here"),
    Table("graph_state", made="the version of this store's graph, which shows whether ranks are stale"),
    Table("graph_ranks", made="computed from the edges in the background"),
    Table("entity_scans", made="the texts that were scanned for entities"),
    Table("memory_entities", made="extracted from the texts in the background"),
    Table("summaries", made="made from the texts in the background"),
    Table("job_runs", made="the runs of background jobs here"),
    Table("job_lease", made="the process that runs background jobs now"),
    Table("migrations", made="the schema of the file"),
    Table("outer_edges", made="exists in checkpoints only: see `arrival.keep_outer_edges`"),
)
"""In the order of writing: referenced tables before referring ones."""
KEPT = tuple(table for table in TABLES if not table.made)
PORTABLE = tuple(table for table in TABLES if table.exported)

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
    "created_by",
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


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds the id of a row of a kept table. A row is not transferred without a `required` one."""

    column: str
    parent: str
    required: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A kept table in a file: its columns, the columns of its key, and references in the order of the columns. `own` is
    the column of the row's id, unless that is the id of its owner; "" then."""

    table: Table
    columns: tuple[str, ...]
    key: tuple[str, ...]
    references: tuple[Reference, ...]
    own: str

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table.name

    @property
    def owner(self) -> Reference | None:
        """The reference to the memory that an export lists a row with, or to an edge of it."""
        return self.references[0] if self.references else None

    @property
    def owners(self) -> tuple[str, ...]:
        """The columns with the memories to which a row belongs."""
        return tuple(each.column for each in self.references if each.parent == MEMORIES and each.required)

    @property
    def among(self) -> tuple[str, ...]:
        """The columns that refer to other rows of the table."""
        return tuple(each.column for each in self.references if each.parent == self.name)

    @property
    def loose(self) -> bool:
        """Whether its rows stay when memories are deleted."""
        return self.table.outlives or (not self.references and self.name != MEMORIES)


def tables(connection: Connection) -> set[str]:
    """The tables of a file, without internal tables of SQLite and of virtual tables."""
    found = rows(
        connection,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual') "
        "AND name NOT GLOB 'sqlite_*'",
    )
    return {name for (name,) in found}


def forms(connection: Connection) -> list[Form]:
    """The kept tables of a file, in the order of writing."""
    there = tables(connection)
    return [_form(connection, table) for table in KEPT if table.name in there]


def _form(connection: Connection, table: Table) -> Form:
    # rows: cid, name, type, notnull, default, pk
    columns = {row[1]: row for row in rows(connection, f"PRAGMA table_info({table.name})")}
    kept = {each.name for each in KEPT}
    parents = {
        column: parent
        for _, _, parent, column, *_ in rows(connection, f"PRAGMA foreign_key_list({table.name})")
        if parent in kept
    }
    parents |= table.ids
    references = tuple(
        Reference(column, parents[column], bool(row[3] or row[5]))
        for column, row in columns.items()
        if column in parents
    )
    key = tuple(name for name, row in columns.items() if row[5])
    # A single INTEGER key is the rowid.
    own = key[0] if len(key) == 1 and columns[key[0]][2] == "INTEGER" and key[0] not in parents else ""
    return Form(table, tuple(columns), key, references, own)
