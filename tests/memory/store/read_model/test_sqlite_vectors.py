"""What the file answers while there is no segment is what the matrix answers, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from storing.indexes import read_model

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.vectors import sqlite_vectors
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.vectors.vectors import LENGTH_ERROR
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Column, Filter, Ids, Level, Vectors

Make = Callable[..., Document]
NOW = 1000.0
RANDOM = np.random.default_rng(3)
SIZE = 16
MEMORIES = 300


def directions(random: np.random.Generator, count: int) -> Vectors:
    """Rows with many ties, near ties, opposites and zeros, and with every length that the store accepts."""
    rows = random.normal(size=(count, SIZE))
    few = np.random.default_rng(0).normal(size=(4, SIZE))
    kinds = random.integers(0, 8, count)
    rows[kinds < 3] = few[random.integers(0, 4, np.count_nonzero(kinds < 3))]
    rows[kinds == 1] += random.normal(size=(np.count_nonzero(kinds == 1), SIZE)) * 1e-6
    rows[kinds == 2] *= -1.0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.sqrt(1.0 + random.uniform(-0.9, 0.9, (count, 1)) * LENGTH_ERROR * random.integers(0, 2, (count, 1)))
    rows[kinds == 3] *= random.integers(0, 2, (np.count_nonzero(kinds == 3), 1))
    return rows.astype(np.float32)


def fill(database: Database, document: Make, seed: int = 7) -> None:
    """Memories of one to four passages, some of them replaced by others and some deleted."""
    random = np.random.default_rng(seed)
    with database.write() as txn:
        for number in [*range(MEMORIES), *random.integers(0, MEMORIES, MEMORIES // 5).tolist()]:
            count = int(random.integers(1, 5))
            one = document(f"{number}", *["alpha"] * count, content_hash=f"{random.integers(10**9)}")
            writer.put_document(txn, one, directions(random, count), NOW, "m")
    gone = [id_ for (id_,) in database.reader().execute("SELECT id FROM memories ORDER BY id") if id_ % 9 == 0]
    with database.write() as txn:
        writer.delete_memories(txn, gone)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, document: Make) -> Iterator[tuple[Database, Columns, VectorMatrix]]:
    with Database.open(tmp_path_factory.mktemp("unloaded") / "store.db") as database:
        fill(database, document)
        columns = read_model(database).current().attributes
        chunks, rows = loading.load_vectors(database.reader())
        yield database, columns, VectorMatrix(chunks, columns.parents(chunks), rows)


def bits(answer: tuple[Ids, Column, Ids]) -> list[tuple[str, bytes]]:
    return [(column.dtype.str, column.tobytes()) for column in answer]


@pytest.mark.requirement("C1.cosine")
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["random", "stored", "tied", "long"]),
    limit=st.integers(0, 60),
    level=st.sampled_from(["memory", "chunk"]),
    share=st.sampled_from([1.0, 0.9, 0.3, 0.02, 0.0]),
)
def test_the_file_answers_as_the_matrix_does(
    store: tuple[Database, Columns, VectorMatrix], seed: int, kind: str, limit: int, level: Level, share: float
) -> None:
    database, columns, matrix = store
    random = np.random.default_rng(seed)
    query = random.normal(size=SIZE).astype(np.float32)
    if kind == "stored":
        query = loading.load_vectors(database.reader())[1][random.integers(matrix.count)]
    elif kind == "tied":
        query = np.random.default_rng(0).normal(size=(4, SIZE))[seed % 4].astype(np.float32)
    elif kind == "long":
        query *= 1000
    some = columns.ids[random.random(columns.count) < share]
    scope = columns.scope(Filter() if share == 1.0 else Filter(memories=tuple(some.tolist())), NOW)

    answer = sqlite_vectors.nearest(database.reader(), columns, query, limit, scope, level)

    assert bits(answer) == bits(matrix.nearest(query, limit, scope, level))


def test_more_results_than_sqlite_vec_can_choose_are_those_of_the_matrix(
    store: tuple[Database, Columns, VectorMatrix],
) -> None:
    database, columns, matrix = store
    query, scope = directions(RANDOM, 1)[0], columns.scope(Filter(), NOW)
    answer = sqlite_vectors.nearest(database.reader(), columns, query, 2_100, scope, "chunk")
    assert bits(answer) == bits(matrix.nearest(query, 2_100, scope, "chunk"))


@pytest.mark.requirement("C1.cosine")
@given(seed=st.integers(0, 10**6), count=st.integers(0, 80))
def test_vectors_from_the_file_are_those_of_the_matrix(
    store: tuple[Database, Columns, VectorMatrix], seed: int, count: int
) -> None:
    database, columns, matrix = store
    known = np.concatenate([columns.ids, columns.chunks, [-1, 0, 10**7]])
    ids = np.random.default_rng(seed).choice(known, count)

    found = sqlite_vectors.vectors(database.reader(), columns, ids)

    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.int32), matrix.vectors(ids).view(np.int32))


def test_a_length_that_is_not_quite_one_changes_no_order(database: Database, document: Make) -> None:
    """To sqlite-vec lengths are nothing, and the first is the nearest; the matrix finds the longest, the last."""
    lengths = np.sqrt(1.0 + np.linspace(-0.99, 0.99, 200) * LENGTH_ERROR)
    angles = np.linspace(0.5, 0.5002, 200)
    rows = (np.stack([np.cos(angles), np.sin(angles)], axis=1) * lengths[:, None]).astype(np.float32)
    with database.write() as txn:
        for number, row in enumerate(rows):
            writer.put_document(txn, document(f"{number}", "a"), row[None], NOW, "m")
    model = read_model(database)
    snapshot = model.current()
    query, scope = np.array([1.0, 0.0], np.float32), snapshot.attributes.scope(Filter(), NOW)

    found = snapshot.vectors.nearest(query, 3, scope, "memory")
    model.load()

    assert not model.current().vectors.from_file
    assert bits(found) == bits(model.current().vectors.nearest(query, 3, scope, "memory"))
    assert snapshot.attributes.label("key", found[0]).tolist() == ["199", "198", "197"]


def test_without_vectors_or_direction_there_is_nothing_and_another_dimension_is_refused(
    database: Database, document: Make, unit: Callable[..., Vectors]
) -> None:
    model = read_model(database)
    everything = model.current().attributes.scope(Filter(), NOW)

    def asked() -> tuple[int, list[int], tuple[int, ...]]:
        space = model.current().vectors
        ids = space.nearest(unit(1)[0], 5, everything, "memory")[0].tolist() if space.dimensions == 0 else []
        return space.dimensions, ids, space.vectors(np.array([1, 2])).shape

    def loaded() -> tuple[int, list[int], tuple[int, ...]]:
        model.load()
        return asked()

    assert asked() == (0, [], (2, 0)) == loaded()

    model = read_model(database)
    with database.write() as txn:
        writer.put_document(txn, document("zero", "a"), np.zeros((1, 4), np.float32), NOW, "m")
    assert asked() == (0, [], (2, 4)) == loaded()

    model = read_model(database)
    with database.write() as txn:
        writer.put_document(txn, document("one", "a"), unit(1), NOW, "m")
    space = model.current().vectors
    everything = model.current().attributes.scope(Filter(), NOW)
    assert space.dimensions == 4
    assert space.nearest(np.zeros(4, np.float32), 5, everything, "memory")[0].tolist() == []
    with pytest.raises(SpeckitError, match=r"E002 the query has the shape \(3,\), the store's vectors have \(4,\)"):
        space.nearest(np.ones(3, np.float32), 5, everything, "memory")
