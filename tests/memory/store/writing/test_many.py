"""Documents written together, against the same documents written one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.records import Chunk, Document, Link, Relation, Tier
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.rows import DocumentEntry

Dump = Callable[[Database], dict[str, list[tuple[Any, ...]]]]

WORDS = ("alpha", "beta", "gamma")
passages = st.lists(st.sampled_from(WORDS), max_size=3)


@st.composite
def entries(draw: st.DrawFn) -> DocumentEntry:
    """A document of few keys and folders, with vectors (one of them zero) and tokens, with vectors alone, or without;
    some cannot be written."""
    words = draw(passages)
    chunks = tuple(Chunk(word, "", "", at + 1, at + 1, (word,)) for at, word in enumerate(words))
    document = Document(
        key=draw(st.sampled_from(["a", "b", "c/a", "c/d"])),
        title=draw(st.sampled_from(WORDS)),
        body=" ".join(words),
        content_hash=draw(st.sampled_from(["h1", "h2"])),
        folder=draw(st.sampled_from(["", "c"])),
        tier=draw(st.sampled_from([Tier.NORMAL, Tier.CRITICAL])),
        triggers=tuple(draw(st.lists(st.sampled_from(["One", "one", "two"]), max_size=2))),
        links=(Link(Relation.CAUSED, "a"),) * draw(st.booleans()),
        chunks=chunks,
        title_tokens=draw(st.sampled_from([("alpha",), ("beta", "gamma"), ("no token",)])),
        mtime_ns=draw(st.sampled_from([None, 7])),
        spec_level=draw(st.sampled_from([None, 1, 2**70])),
        extra=draw(st.sampled_from([{}, {"k": "é"}])),
    )
    if not draw(st.booleans()):
        return DocumentEntry(document)
    rows = np.zeros((len(chunks), 4), np.float32)
    rows[:, draw(st.integers(0, 3))] = 1.0
    rows[:1] *= draw(st.sampled_from([1.0, 1.0, 0.0, 3.0]))  # the last one is no vector of a store
    tokens = [np.array([at, 9], np.uint16) for at in range(len(chunks))]
    return DocumentEntry(document, rows, tokens if draw(st.booleans()) else None)


def singly(database: Database, given_entries: list[DocumentEntry]) -> list[Any]:
    outcomes: list[Any] = []
    with database.write() as txn:
        for entry in given_entries:
            try:
                put = writer.put_document(txn, entry.document, entry.vectors, 5.0, "m", entry.tokens)
            except writer.UNWRITABLE as error:
                outcomes.append((type(error), str(error)))
            else:
                outcomes.append(put)
    return outcomes


def together(database: Database, given_entries: list[DocumentEntry]) -> list[Any]:
    with database.write() as txn:
        outcomes = writer.put_documents(txn, given_entries, 5.0, "m")
    return [(type(put), str(put)) if isinstance(put, Exception) else put for put in outcomes]


def content(database: Database, dump: Dump) -> dict[str, list[tuple[Any, ...]]]:
    """Every row, and each word with its places, but not how the full-text table keeps them; no times of migrations, no
    random tokens or names, no marks of folders, which only tell one change from another."""
    tables = {name: rows for name, rows in dump(database).items() if not name.startswith(("memory_fts", "surface_fts"))}
    del tables["migrations"], tables["store_identity"]
    tables["changes"] = [row[:3] for row in tables["changes"]]
    connection = database.reader()
    for table in ("memory_fts", "surface_fts"):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_places USING fts5vocab(main, {table}, instance)")
        tables[table] = list(connection.execute(f"SELECT * FROM temp.{table}_places ORDER BY 1, 2, 3, 4"))
    tables["uncounted_folders"] = [row[:1] for row in tables["uncounted_folders"]]
    return tables


@pytest.mark.requirement("M1")
@settings(max_examples=examples(0.2), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(entries(), max_size=7))
def test_documents_written_together_leave_what_they_leave_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, dump: Dump, given_entries: list[DocumentEntry]
) -> None:
    folder: Path = tmp_path_factory.mktemp("stores")
    with Database.open(folder / "one.db") as one, Database.open(folder / "many.db") as many:
        assert together(many, given_entries) == singly(one, given_entries)
        assert content(many, dump) == content(one, dump)


def test_of_a_failed_document_the_error_stands_in_its_place(database: Database) -> None:
    broken = Document("b", "t", "x", "h", title_tokens=("two words",))
    outcomes = together(
        database,
        [
            DocumentEntry(Document("a", "t", "x", "h")),
            DocumentEntry(broken),
            DocumentEntry(Document("c", "t", "x", "h")),
        ],
    )

    assert [outcome[0] for outcome in outcomes] == [1, ValueError, 2]


def test_vectors_of_another_shape_fail_their_document_alone(database: Database) -> None:
    document = Document("a", "t", "x", "h", chunks=(Chunk("x", "", "", 1, 1, ("x",)),))
    flat = DocumentEntry(document, np.ones(4, np.float32))
    outcomes = together(database, [flat, DocumentEntry(replace(document, key="b"), np.eye(1, 4, dtype=np.float32))])

    assert issubclass(outcomes[0][0], SpeckitError)
    assert outcomes[1] == (1, "created")
