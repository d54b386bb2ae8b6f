"""The graph that PostgreSQL keeps of a workspace's vectors only selects rows, which are compared exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files import write_file
from postgres_server import link_at
from storing.indexes import read_model

from speckit_memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.postgres import hnsw
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.vectors import sqlite_vectors
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import answered_by
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Filter, Ids, Level, Vectors

OID = "SELECT oid::int8 FROM pg_class WHERE relname LIKE 'hnsw%' ORDER BY oid DESC LIMIT 1"
MEMORIES, PASSAGES, SIZE = 20, 15, 24
NOW = 1_000.0
RANDOM = np.random.default_rng(11)


def directions(count: int, size: int = SIZE) -> Vectors:
    """Unit vectors of a few subjects each, as those of texts are."""
    subjects = np.random.default_rng(1).normal(size=(12, size))
    rows = RANDOM.gamma(0.3, size=(count, 12)) @ subjects + 0.1 * RANDOM.normal(size=(count, size))
    made: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return made


def fill(database: Database, document: Callable[..., Document], count: int = MEMORIES, size: int = SIZE) -> None:
    with database.write() as txn:
        for number in range(count):
            one = document(f"{number}", *["alpha"] * PASSAGES, content_hash=f"{size} {number}")
            writer.put_document(txn, one, directions(PASSAGES, size), NOW, f"model of {size}")


def indexes(database: Database) -> dict[str, bool]:
    return hnsw._indexes(database.reader())


@pytest.fixture
def store(tmp_path: Path, document: Callable[..., Document]) -> Iterator[Database]:
    with Database.open(link_at(tmp_path / "store.db")) as database:
        fill(database, document)
        yield database


@pytest.fixture
def index(store: Database) -> Any:
    assert store.vector_index is not None
    return store.vector_index


def test_an_index_is_built_once_and_none_of_vectors_that_are_too_long(store: Database, index: Any) -> None:
    index.build(hnsw.MOST_DIMENSIONS + 1)
    assert (indexes(store), index.usable(SIZE)) == ({}, False)
    assert index.near(directions(1)[0], 5).tolist() == []

    index.build(SIZE)
    [made] = index._reader().fetch(OID, []).rows
    index.build(SIZE)

    assert indexes(store) == {f"hnsw_{store.reader().workspace}_{SIZE}": True}  # type: ignore[attr-defined]
    assert [made] == index._reader().fetch(OID, []).rows
    assert index.usable(SIZE)


@pytest.mark.requirement("C1.cosine")
def test_what_the_index_finds_has_the_similarities_of_the_matrix_and_a_filter_loses_nothing(
    store: Database, index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.build(SIZE)
    monkeypatch.setattr(vectors, "LARGEST_SEARCH", 200)
    columns: Columns = read_model(store).current().attributes
    chunks, rows = loading.load_vectors(store.reader())
    matrix = VectorMatrix(chunks, columns.parents(chunks), rows)
    levels: tuple[Level, ...] = ("memory", "chunk")
    by_index = []
    for share, level in product((1.0, 0.5, 0.25), levels):
        some = columns.ids[: round(share * MEMORIES)]
        scope = columns.scope(Filter() if share == 1.0 else Filter(memories=tuple(some.tolist())), NOW)
        before, found = answered_by("hnsw"), 0
        for query in directions(10):
            answer = sqlite_vectors.nearest(store.reader(), columns, query, 5, scope, level, index)
            exact = matrix.nearest(query, len(chunks), scope, level)
            at = [exact[0].tolist().index(one) for one in answer[0].tolist()]
            assert (len(at), at) == (5, sorted(at))
            assert [column.tolist() for column in answer] == [column[at].tolist() for column in exact]
            found += sum(place < 5 for place in at)
        assert found >= 49
        by_index.append(answered_by("hnsw") - before)

    # of five memories, all passages are compared: of the index, 4 * 60 rows are more than may be asked for
    assert by_index == [10, 10, 10, 10, 0, 0]


def test_the_server_can_answer_by_the_index(store: Database, index: Any) -> None:
    index.build(SIZE)
    connection: Any = store.reader()
    session, sent, fetch = connection.session, list[str](), connection.fetch

    def note(sql: str, values: list[Any]) -> Any:
        sent.append(sql)
        return fetch(sql, values)

    connection.fetch = note
    index.near(directions(1)[0], 5)
    statement = sent[-1].replace("$1", f"'{directions(1)[0].tolist()}'::vector").replace("$2", "5")
    with session.transaction():
        session.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        plan = "\n".join(line for (line,) in session.execute(f"EXPLAIN {statement}"))

    assert f"Index Scan using hnsw_{connection.workspace}_{SIZE}" in plan


def test_vectors_of_another_length_are_stored_beside_an_index_and_get_one(
    store: Database, index: Any, document: Callable[..., Document]
) -> None:
    index.build(SIZE)
    with store.write() as txn:
        vectors.forget_all(txn)
    fill(store, document, 10, 2 * SIZE)

    assert not index.usable(2 * SIZE)
    index.build(2 * SIZE)
    assert indexes(store) == {f"hnsw_{store.reader().workspace}_{2 * SIZE}": True}  # type: ignore[attr-defined]
    assert len(index.near(directions(1, 2 * SIZE)[0], 7)) == 7


def test_an_index_that_was_not_finished_is_built_again_and_not_used(store: Database, index: Any) -> None:
    index.build(SIZE)
    connection: Any = store.reader()
    name = f"hnsw_{connection.workspace}_{SIZE}"
    connection.session.execute(f"DROP INDEX {name}")
    with pytest.raises(Exception, match="could not create unique index"):  # which is what a stopped build leaves
        connection.session.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON chunks (workspace, ordinal)")

    assert (indexes(store), index.usable(SIZE)) == ({name: False}, False)
    index.build(SIZE)
    assert (indexes(store), index.usable(SIZE)) == ({name: True}, True)


def test_an_index_is_of_its_workspace_alone(
    store: Database, index: Any, tmp_path: Path, document: Callable[..., Document]
) -> None:
    index.build(SIZE)
    with Database.open(link_at(tmp_path / "other.db")) as other:
        fill(other, document, 3)
        assert (indexes(other), other.vector_index.usable(SIZE)) == ({}, False)  # type: ignore[union-attr]

        def ids(database: Database) -> Ids:
            return loading.load_vectors(database.reader())[0]

        other.vector_index.build(SIZE)  # type: ignore[union-attr]
        near = other.vector_index.near(directions(1)[0], 50)  # type: ignore[union-attr]
        assert sorted(near.tolist()) == ids(other).tolist()
        assert len(index.near(directions(1)[0], 5_000)) > 0.9 * len(ids(store))


def test_a_role_that_does_not_own_the_table_is_told_so(
    store: Database, index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hnsw, "_name", lambda connection, size: f"x ON pg_class (oid); -- {size}")
    with pytest.raises(SpeckitError, match="E054 the vectors could not be indexed"):
        index.build(SIZE)


def test_a_search_without_a_segment_says_that_the_index_answered(tmp_path: Path) -> None:
    for number in range(8):
        write_file(tmp_path / f"notes/{number}.md", f"# Note {number}\n\nRanking of kind {number} by a journal.\n")
    few = "pipeline: few\nextends: vector\ncandidates: {channels: [{use: vector, limit: 5}]}\n"
    pipeline = str(write_file(tmp_path / "few.yaml", few))
    link_at(tmp_path / "m.db")
    told = []
    for setting in ("9", "0", "exact"):
        environ = {"SPECKIT_VECTOR_INDEX": setting}
        with Memory.open(tmp_path / "m.db", pipeline, root=tmp_path, environ=environ) as memory:
            memory.index([tmp_path / "notes"])
            found = memory.search("the ranking of a journal", limit=3, now=2e9)
            (check,) = (check for check in memory.status().checks if check.name == "vectors")
            rows = [(row.key, row.score) for row in found.results]
            told.append((found.notes.facts.get("vectors_from"), check.detail, rows))

    assert [one[:2] for one in told] == [
        (None, "all 8 vectors are compared; an approximate index is used from 9 on"),
        ("hnsw", "an approximate index of the server finds the nearest of 8 vectors, as there is no segment"),
        (None, "all 8 vectors are compared; an index may be built but not used"),
    ]
    assert told[0][2] == told[1][2] == told[2][2]
