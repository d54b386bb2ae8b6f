"""Every table of the schema is one that a checkpoint brings back, or one that is made from these."""

from __future__ import annotations

import pytest

from speckit_memory.memory.store.checkpoints.table_map import KEPT, MADE, forms, tables, unclassified_tables
from speckit_memory.memory.store.file.connection import Database


@pytest.mark.requirement("M14", "M14.tables")
def test_every_table_is_kept_or_made(database: Database) -> None:
    connection = database.reader()
    assert unclassified_tables(connection) == []
    connection.execute("CREATE TABLE of_tomorrow (a)")
    assert unclassified_tables(connection) == ["of_tomorrow"]
    assert {kept.name for kept in KEPT} <= set(tables(connection))
    assert not {kept.name for kept in KEPT} & MADE.keys()


def test_what_a_row_belongs_to_is_read_from_the_schema(database: Database) -> None:
    found = {form.kept.name: form for form in forms(database.reader())}
    assert found["causal_edges"].owners == ("source_id", "target_id")
    assert found["causal_edges"].own == "id"
    assert found["declared_links"].owners == ("memory_id",)
    assert [each.parent for each in found["chunk_tokens"].references] == ["chunks"]
    assert found["session_sent"].owners == ("memory_id",)
    assert found["source_paths"].references == ()


def test_what_is_referred_to_is_written_first(database: Database) -> None:
    there: set[str] = set()
    for form in forms(database.reader()):
        there.add(form.kept.name)
        assert {each.parent for each in form.references} <= there
