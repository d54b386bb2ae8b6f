"""Every table and column of a store is exported, or named with the reason why not."""

from __future__ import annotations

import pytest

from speckit_memory.memory.store.checkpoints.table_map import KEPT, MADE, MEMORIES, forms
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.portable import tables
from speckit_memory.memory.store.portable.tables import EDGES, LIVED, OF_THE_TEXT, PORTABLE, SAID


@pytest.mark.requirement("M14", "M14.lossless")
def test_every_table_that_is_kept_is_exported_or_made_of_the_text() -> None:
    exported = {table.name for table in PORTABLE} | {MEMORIES}
    assert exported | OF_THE_TEXT.keys() == {kept.name for kept in KEPT}
    assert not exported & (OF_THE_TEXT.keys() | MADE.keys())


@pytest.mark.requirement("M14", "M14.lossless")
def test_every_column_is_exported_or_has_a_reason(database: Database) -> None:
    shapes = {form.kept.name: form for form in forms(database.reader())}
    assert sorted((*SAID, *LIVED, *tables.MADE)) == sorted(shapes[MEMORIES].columns)
    for table in PORTABLE:
        form = shapes[table.name]
        told = {*table.without, *table.digests, *table.numbered, *table.clock, *table.later, table.owner} - {""}
        assert told | ({table.no_act[0]} if table.no_act else set()) <= set(form.columns), table.name
        assert all(table.without.values())
        # rows that nobody owns, and rows that a memory or an edge of one owns
        parents = {each.column: each.parent for each in form.references}
        assert (parents.get(table.owner) in (MEMORIES, EDGES)) == bool(table.owner)
        assert form.own == "" or form.own in table.without


@pytest.mark.requirement("M14", "M14.lossless")
def test_a_table_of_tomorrow_is_noticed(database: Database) -> None:
    database.reader().execute("ALTER TABLE memories ADD COLUMN of_tomorrow REAL")
    shapes = {form.kept.name: form for form in forms(database.reader())}
    assert set(shapes[MEMORIES].columns) - {*SAID, *LIVED, *tables.MADE} == {"of_tomorrow"}


def test_what_is_referred_to_is_written_first(database: Database) -> None:
    there = {MEMORIES}
    shapes = {form.kept.name: form for form in forms(database.reader())}
    for table in PORTABLE:
        there.add(table.name)
        assert {each.parent for each in shapes[table.name].references} <= there
