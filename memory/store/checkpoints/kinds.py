"""Which tables belong to the memories and which are made from them: what a checkpoint brings back (feature M14).

Every table of the schema is named here once, and a test refuses one that is not. What a row belongs to is read from the
foreign keys of the schema, so that a new table needs a line and no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import apsw

from speckit_memory.memory.store.file.guarding.queries import rows

MEMORIES = "memories"
CHUNKS = "chunks"


@dataclass(frozen=True, slots=True)
class Kept:
    """A table whose rows nothing else tells. `ids` are columns that hold ids of a table, which may be this one, without
    saying so by a foreign key. Of a table with a `folder` column, a folder's checkpoint holds the rows of the folder.

    A row that `outlives` its memory comes back without it: ids are never drawn twice, so it means no other.
    """

    name: str
    ids: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    outlives: bool = False


KEPT = (
    Kept(MEMORIES),
    Kept("texts"),
    Kept("token_counts"),
    Kept(CHUNKS),
    Kept("chunk_tokens"),
    Kept("triggers"),
    Kept("declared_links"),
    Kept("causal_edges"),
    Kept("edge_history", {"undoes": "edge_history", "undone_by": "edge_history"}),
    Kept("edge_uses"),
    Kept("session_uses"),
    Kept("scanned_memories"),
    Kept("suspected_contradictions"),
    Kept("promotions"),
    Kept("judgements"),
    Kept("archivals"),
    Kept("absences"),
    Kept("restorations"),
    Kept("working_memory"),
    Kept("session_sent", {"memory_id": MEMORIES}, outlives=True),
    Kept("session_state"),
    Kept("source_paths"),
    Kept("former_keys"),
    Kept("task_records", folder="folder"),
    Kept("selections", {"memory_id": MEMORIES}, outlives=True),
    Kept("unlearned"),
)
"""In the order in which they are written: what is referred to before what refers to it."""

MADE = {
    "chunk_vectors": "vectors are copied beside the rows, where both stores have them of the same model",
    "memory_fts": "the full-text rows are made of the tokens of texts and passages",
    "surface_fts": "the rows of words as written are made of titles and texts",
    "meta": "facts about the whole store, which `restoring` takes over one by one",
    "store_identity": "which store this is; a checkpoint says whose it is",
    "id_sequence": "goes forward alone: no id is drawn twice",
    "removed_files": "files whose memories a restore has removed; noted anew by a restore",
    "changes": "the log by which open processes follow; a restore is an entry in it",
    "changed_keys": "work that is due, noted again by a restore",
    "changed_links": "work that is due, noted again by a restore",
    "uncounted_folders": "work that is due, noted again by a restore",
    "embedding_cache": "vectors of texts that were embedded before: a cache",
    "embedding_models": "what the ids of models mean; noted again by who embeds",
    "embedding_build": "vectors that a process is making here",
    "graph_state": "how often edges have changed here, so that ranks are known to be due",
    "graph_ranks": "computed of the edges in the background",
    "entity_scans": "which texts entities were taken from",
    "memory_entities": "taken from the texts in the background",
    "summaries": "made of the texts in the background",
    "job_runs": "when background work was done here",
    "job_lease": "who does background work now",
    "migrations": "the schema of the file",
    "outer_edges": "of a checkpoint alone: see `outer_edges`",
}
"""Tables that are not copied row by row, and why."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds the id of a row of a kept table. A row whose `required` one is gone does not come back, but
    for a copy of all of the store where it `outlives` that one."""

    column: str
    parent: str
    required: bool
    outlives: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """How the rows of a kept table look in a file. `own` is the column of its own id, where it has one that is not the
    id of what it belongs to."""

    kept: Kept
    columns: tuple[str, ...]
    references: tuple[Reference, ...]
    own: str = ""

    @property
    def owners(self) -> tuple[str, ...]:
        """The columns that say to which memories a row belongs."""
        return tuple(each.column for each in self.references if each.parent == MEMORIES and each.required)

    @property
    def loose(self) -> bool:
        """Whether its rows stay when memories go."""
        return self.kept.outlives or (not self.references and self.kept.name != MEMORIES)


def tables(connection: apsw.Connection) -> list[str]:
    """The tables of a file but those that SQLite and virtual tables keep for themselves."""
    found = rows(connection, "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    virtual = tuple(f"{name}_" for name, sql in found if sql.upper().startswith("CREATE VIRTUAL"))
    return [name for name, _ in found if not name.startswith((*virtual, "sqlite_"))]


def unclassified(connection: apsw.Connection) -> list[str]:
    """Tables that nobody has said of whether they are kept or made."""
    return sorted(set(tables(connection)) - {kept.name for kept in KEPT} - MADE.keys())


def forms(connection: apsw.Connection) -> list[Form]:
    """The kept tables that a file has, in the order in which they are written."""
    there = set(tables(connection))
    return [_form(connection, kept) for kept in KEPT if kept.name in there]


def _form(connection: apsw.Connection, kept: Kept) -> Form:
    columns = {row[1]: row for row in rows(connection, f"PRAGMA table_info({kept.name})")}
    references = [
        Reference(column, parent, bool(columns[column][3] or columns[column][5]))
        for _, _, parent, column, *_ in rows(connection, f"PRAGMA foreign_key_list({kept.name})")
        if parent in {each.name for each in KEPT}
    ]
    references += [
        Reference(column, parent, bool(columns[column][3]), kept.outlives) for column, parent in kept.ids.items()
    ]
    keys = [name for name, row in columns.items() if row[5]]
    single = len(keys) == 1 and columns[keys[0]][2].upper() == "INTEGER"
    own = keys[0] if single and keys[0] not in {each.column for each in references} else ""
    return Form(kept, tuple(columns), tuple(sorted(references, key=lambda each: each.column)), own)
