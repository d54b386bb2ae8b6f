"""Every table and column of the schema is in the map, and what a transfer needs is read from the schema."""

from __future__ import annotations

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.transfer.table_map import (
    EDGES,
    LIVED,
    MADE,
    MEMORIES,
    PORTABLE,
    SAID,
    TABLES,
    forms,
    tables,
)


@pytest.mark.requirement("M14", "M14.tables", "M14.lossless")
def test_every_table_and_every_column_of_memories_is_in_the_map(store_file: Database) -> None:
    connection = store_file.reader()
    listed = [table.name for table in TABLES]
    # of those that every file has not: one is made with the first vector, one with the checkpoint of a folder
    assert sorted(listed) == sorted({*tables(connection), "chunk_vectors", "outer_edges"})
    assert sorted((*SAID, *LIVED, *MADE)) == sorted(forms(connection)[0].columns)
    assert not [table.name for table in TABLES if table.made and table.of_text]

    connection.execute("CREATE TABLE of_tomorrow (a)")
    connection.execute("ALTER TABLE memories ADD COLUMN of_tomorrow REAL")
    assert tables(connection) - set(listed) == {"of_tomorrow"}
    assert set(forms(connection)[0].columns) - {*SAID, *LIVED, *MADE} == {"of_tomorrow"}


@pytest.mark.requirement("M14", "M14.lossless")
def test_what_the_map_names_is_there(database: Database) -> None:
    shapes = {form.name: form for form in forms(database.reader())}
    for table in PORTABLE:
        form = shapes[table.name]
        told = {*table.digests, *table.ids, *table.clock, *table.later, table.root, table.folder} - {""}
        assert told | ({table.no_act[0]} if table.no_act else set()) <= set(form.columns), table.name
        # rows that nobody owns, and rows that a memory or an edge of one owns
        assert form.owner is None or form.owner.parent in (MEMORIES, EDGES)
        assert bool(table.later or table.root) == (form.owner is None)


def test_what_a_row_belongs_to_is_read_from_the_schema(database: Database) -> None:
    found = {form.name: form for form in forms(database.reader())}
    assert found["causal_edges"].owners == ("source_id", "target_id")
    assert found["causal_edges"].own == "id"
    assert found["declared_links"].owners == ("memory_id",)
    assert [each.parent for each in found["chunk_tokens"].references] == ["chunks"]
    assert found["session_sent"].owners == ("memory_id",)
    assert found["source_paths"].references == ()
    assert found["edge_history"].among == ("undoes", "undone_by")


def test_what_is_referred_to_is_written_first(database: Database) -> None:
    there: set[str] = set()
    for form in forms(database.reader()):
        there.add(form.name)
        assert {each.parent for each in form.references} <= there
