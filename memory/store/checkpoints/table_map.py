"""Classification of tables: those that a checkpoint restores, and those derived from them (feature M14).

Every table of the schema is listed here; a test finds those that are not. The owner of a row is read from the foreign
keys of the schema, so that a new table needs a line and no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import apsw

from speckit_memory.memory.store.file.guarding.queries import rows

MEMORIES = "memories"
CHUNKS = "chunks"


@dataclass(frozen=True, slots=True)
class CheckpointTable:
    """A table whose rows cannot be derived from others. `ids` maps columns that hold ids without a foreign key to their
    table, which may be this one. For a table with a `folder` column, a folder's checkpoint holds that folder's rows.

    A row that `outlives` its memory is restored without it: ids are never reused, so it cannot mean another memory.
    """

    name: str
    ids: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    outlives: bool = False


KEPT = (
    CheckpointTable(MEMORIES),
    CheckpointTable("texts"),
    CheckpointTable("token_counts"),
    CheckpointTable(CHUNKS),
    CheckpointTable("chunk_tokens"),
    CheckpointTable("triggers"),
    CheckpointTable("declared_links"),
    CheckpointTable("causal_edges"),
    CheckpointTable("edge_history", {"undoes": "edge_history", "undone_by": "edge_history"}),
    CheckpointTable("edge_uses"),
    CheckpointTable("session_uses"),
    CheckpointTable("scanned_memories"),
    CheckpointTable("suspected_contradictions"),
    CheckpointTable("promotions"),
    CheckpointTable("judgements"),
    CheckpointTable("archivals"),
    CheckpointTable("absences"),
    CheckpointTable("restorations"),
    CheckpointTable("working_memory"),
    CheckpointTable("session_sent", {"memory_id": MEMORIES}, outlives=True),
    CheckpointTable("session_state"),
    CheckpointTable("source_paths"),
    CheckpointTable("former_keys"),
    CheckpointTable("task_records", folder="folder"),
    CheckpointTable("selections", {"memory_id": MEMORIES}, outlives=True),
    CheckpointTable("unlearned"),
)
"""In the order of writing: referenced tables before referring ones."""

MADE = {
    "chunk_vectors": "vectors are copied separately, if both stores have them by the same model",
    "memory_fts": "full-text rows are made from the tokens of texts and passages",
    "surface_fts": "rows of words as written are made from titles and texts",
    "meta": "facts about the whole store, which `transfer.copy_facts` copies",
    "store_identity": "the store's identity; a checkpoint records whose it is",
    "id_sequence": "only increases: no id is used twice",
    "removed_files": "files whose memories a restore removed; recorded again by a restore",
    "changes": "the log from which open processes update; a restore adds entries",
    "changed_keys": "pending work, recorded again by a restore",
    "changed_links": "pending work, recorded again by a restore",
    "uncounted_folders": "pending work, recorded again by a restore",
    "embedding_cache": "vectors of embedded texts: a cache",
    "embedding_models": "descriptions of model ids; recorded again when texts are embedded",
    "embedding_build": "vectors that a process is building here",
    "graph_state": "the version of this store's graph, which shows whether ranks are stale",
    "graph_ranks": "computed from the edges in the background",
    "entity_scans": "the texts that were scanned for entities",
    "memory_entities": "extracted from the texts in the background",
    "summaries": "made from the texts in the background",
    "job_runs": "the runs of background jobs here",
    "job_lease": "the process that runs background jobs now",
    "migrations": "the schema of the file",
    "outer_edges": "exists in checkpoints only: see `outer_edges`",
}
"""Tables that are not copied row by row, with the reason."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds the id of a row of a kept table. A row whose `required` reference is missing is not restored,
    except in a copy of the whole store if it `outlives` the referenced row."""

    column: str
    parent: str
    required: bool
    outlives: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """The columns and references of a kept table in a file. `own` is the column of the row's id, unless that is the id
    of its owner; "" then."""

    kept: CheckpointTable
    columns: tuple[str, ...]
    references: tuple[Reference, ...]
    own: str = ""

    @property
    def owners(self) -> tuple[str, ...]:
        """The columns with the memories to which a row belongs."""
        return tuple(each.column for each in self.references if each.parent == MEMORIES and each.required)

    @property
    def loose(self) -> bool:
        """Whether its rows stay when memories are deleted."""
        return self.kept.outlives or (not self.references and self.kept.name != MEMORIES)


def tables(connection: apsw.Connection) -> list[str]:
    """The tables of a file, without internal tables of SQLite and shadow tables of virtual tables."""
    found = rows(connection, "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    virtual = tuple(f"{name}_" for name, sql in found if sql.upper().startswith("CREATE VIRTUAL"))
    return [name for name, _ in found if not name.startswith((*virtual, "sqlite_"))]


def unclassified_tables(connection: apsw.Connection) -> list[str]:
    """Tables that are neither in `KEPT` nor in `MADE`."""
    return sorted(set(tables(connection)) - {kept.name for kept in KEPT} - MADE.keys())


def forms(connection: apsw.Connection) -> list[Form]:
    """The kept tables of a file, in the order of writing."""
    there = set(tables(connection))
    return [_form(connection, kept) for kept in KEPT if kept.name in there]


def _form(connection: apsw.Connection, kept: CheckpointTable) -> Form:
    columns = {row[1]: row for row in rows(connection, f"PRAGMA table_info({kept.name})")}
    references = [
        Reference(column, parent, bool(columns[column][3] or columns[column][5]))
        for _, _, parent, column, *_ in rows(connection, f"PRAGMA foreign_key_list({kept.name})")
        if parent in {each.name for each in KEPT}
    ]
    references += [
        Reference(column, parent, bool(columns[column][3]), kept.outlives) for column, parent in kept.ids.items()
    ]
    # table_info rows: cid, name, type, notnull, default, pk. A single INTEGER key is the rowid.
    keys = [name for name, row in columns.items() if row[5]]
    single = len(keys) == 1 and columns[keys[0]][2].upper() == "INTEGER"
    own = keys[0] if single and keys[0] not in {each.column for each in references} else ""
    return Form(kept, tuple(columns), tuple(sorted(references, key=lambda each: each.column)), own)
