"""The table of facts is what the schema has, and what the port for it says."""

from __future__ import annotations

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.file.schema.facts import FACTS, KEPT_FACTS, KEY, LABELS, NUMBERS
from speckit_memory.pipeline.ports import Attributes

OF_FILES = {"fingerprint", "embedding_status"}
"""Columns by which indexing knows what to do; nobody else reads them."""


@pytest.mark.requirement("M1")
def test_every_column_is_a_fact_of_its_kind(database: Database) -> None:
    columns = rows(database.reader(), "SELECT name, lower(type), \"notnull\" FROM pragma_table_info('memories')")
    stored = {name: (kind, bool(required)) for name, kind, required in columns if name not in OF_FILES}

    told = {fact.name: (fact.kind, not fact.optional) for fact in (*FACTS, *KEPT_FACTS)}
    assert {name: told[name] for name in told} == {name: stored[name] for name in stored if name != KEY.name}


def test_the_port_names_every_fact() -> None:
    for method, names in ((Attributes.number, NUMBERS), (Attributes.label, LABELS)):
        assert [name for name in names if name not in str(method.__doc__)] == []
