from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Column, Ids, Level, Vectors

SIZE = 16


class Everything:
    complete = True
    size = 10**9

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        return ids > 0


class Only:
    """Admits these memories; the tests' chunks need no answer."""

    complete = False

    def __init__(self, memories: Ids) -> None:
        self.memories = memories
        self.size = len(memories)

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        return np.isin(ids, self.memories)


Collection = tuple[Ids, Ids, Vectors]


def random_collection(seed: int, memories: int = 60) -> Collection:
    """Memories 1, 2, … of one to four chunks, a single one with the memory's id. Every fifth vector is a duplicate."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 5, memories)
    parents = np.repeat(np.arange(1, memories + 1), sizes)
    chunks = np.where(np.repeat(sizes, sizes) == 1, parents, np.arange(len(parents)) + 1000)
    rows = random.normal(size=(len(parents), SIZE))
    rows[::5] = rows[0]
    return chunks, parents, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def brute_force(
    collection: Collection, query: Vectors, limit: int, memories: Ids | None, level: Level
) -> list[tuple[int, float, int]]:
    """The answer by definition, with Python's own sums."""
    best: dict[int, tuple[float, int]] = {}
    length = sum(float(x) ** 2 for x in query) ** 0.5
    for chunk, parent, row in zip(*collection, strict=True):
        if memories is None or parent in memories:
            similarity = round(sum(float(a) * float(b) for a, b in zip(row, query, strict=True)) / length, 7)
            id_ = int(parent if level == "memory" else chunk)
            best[id_] = min(best.get(id_, (2.0, 0)), (-similarity, int(chunk)))
    ranked = sorted((negated, id_, chunk) for id_, (negated, chunk) in best.items())[:limit]
    return [(id_, -negated, chunk) for negated, id_, chunk in ranked]


def listed(answer: tuple[Ids, Column, Ids]) -> list[tuple[int, float, int]]:
    ids, similarity, chunks = (column.tolist() for column in answer)
    return list(zip(ids, [round(value, 7) for value in similarity], chunks, strict=True))


@pytest.mark.requirement("C1.cosine")
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.sampled_from(["memory", "chunk"]),
    st.none() | st.sets(st.integers(1, 60), max_size=60),
)
def test_nearest_is_the_exact_total_order_at_both_levels(
    seed: int, limit: int, level: Level, admitted: set[int] | None
) -> None:
    collection = random_collection(seed)
    query = np.random.default_rng(seed + 1).normal(size=SIZE).astype(np.float32)
    memories = None if admitted is None else np.array(sorted(admitted), np.int64)
    scope = Everything() if memories is None else Only(memories)
    answer = listed(VectorMatrix(*collection).nearest(query, limit, scope, level))
    assert answer == brute_force(collection, query, limit, memories, level)


@given(st.integers(0, 10**6), st.sampled_from(["memory", "chunk"]))
def test_neither_order_of_arrival_nor_replaced_rows_change_an_answer(seed: int, level: Level) -> None:
    chunks, parents, rows = random_collection(seed)
    shuffled = np.random.default_rng(seed).permutation(len(chunks))
    first, second = shuffled[: len(chunks) // 2], shuffled[len(chunks) // 2 :]
    # Rows of a memory arrive together, so the second half brings its memories' earlier rows again.
    second = np.flatnonzero(np.isin(parents, parents[second]))[::-1]
    grown = VectorMatrix(chunks[first], parents[first], rows[first][:, ::-1]).replaced(
        np.unique(parents), chunks[:0], parents[:0], rows[:0]
    )
    first = np.flatnonzero(~np.isin(parents, parents[second]))
    grown = grown.replaced(np.empty(0, np.int64), chunks[first], parents[first], rows[first])
    grown = grown.replaced(np.unique(parents[second]), chunks[second], parents[second], rows[second])
    fresh = VectorMatrix(chunks, parents, rows)
    assert listed(grown.nearest(rows[3], 20, Everything(), level)) == listed(
        fresh.nearest(rows[3], 20, Everything(), level)
    )
    ids = np.array([1, 2, 5, 1003, 1004, 9999])
    np.testing.assert_array_equal(grown.vectors(ids), fresh.vectors(ids))
    assert (grown.count, grown.dimensions) == (fresh.count, SIZE)


def test_a_matrix_keeps_its_answer_while_two_successors_grow_from_it() -> None:
    chunks, parents, rows = random_collection(1)
    origin = VectorMatrix(chunks, parents, rows).replaced(parents[:1], chunks[:1], parents[:1], rows[:1])
    before = listed(origin.nearest(rows[0], 30, Everything(), "chunk"))
    none = np.empty(0, np.int64)
    left = origin.replaced(none, np.array([5000]), np.array([500]), rows[1:2])
    right = origin.replaced(none, np.array([6000]), np.array([600]), rows[2:3])
    assert listed(origin.nearest(rows[0], 30, Everything(), "chunk")) == before
    np.testing.assert_array_equal(left.vectors(np.array([5000, 6000])), [rows[1], np.zeros(SIZE)])
    np.testing.assert_array_equal(right.vectors(np.array([5000, 6000])), [np.zeros(SIZE), rows[2]])


def test_a_matrix_of_mostly_removed_rows_answers_as_one_of_the_others() -> None:
    chunks, parents, rows = random_collection(2)
    removed = np.unique(parents)[5:]
    small = VectorMatrix(chunks, parents, rows).replaced(removed, chunks[:0], parents[:0], rows[:0])
    kept = ~np.isin(parents, removed)
    fresh = VectorMatrix(chunks[kept], parents[kept], rows[kept])
    assert listed(small.nearest(rows[0], 99, Everything(), "memory")) == listed(
        fresh.nearest(rows[0], 99, Everything(), "memory")
    )
    assert small.count == np.count_nonzero(kept)


def test_the_vector_of_a_memory_is_the_mean_direction_of_its_chunks() -> None:
    rows = np.array([[1, 0], [0, 1], [0, 1], [0, -1], [1, 0]], np.float32)
    matrix = VectorMatrix(np.array([11, 12, 21, 22, 3]), np.array([1, 1, 2, 2, 3]), rows)
    half = np.float32(np.sqrt(0.5))
    np.testing.assert_array_equal(
        matrix.vectors(np.array([12, 1, 2, 3, 4, -1])), [[0, 1], [half, half], [0, 0], [1, 0], [0, 0], [0, 0]]
    )


def test_nothing_is_near_to_a_zero_query_nor_in_an_empty_matrix_nor_within_a_limit_of_zero() -> None:
    chunks, parents, rows = random_collection(3)
    matrix, empty = VectorMatrix(chunks, parents, rows), VectorMatrix(chunks[:0], parents[:0], rows[:0, :0])
    assert listed(matrix.nearest(np.zeros(SIZE, np.float32), 5, Everything(), "memory")) == []
    assert listed(matrix.nearest(rows[0], 0, Everything(), "memory")) == []
    assert listed(matrix.nearest(rows[0], 5, Only(np.array([777])), "memory")) == []
    assert listed(empty.nearest(rows[0], 5, Everything(), "chunk")) == []
    assert (empty.dimensions, empty.count, empty.vectors(np.array([1, 2])).shape) == (0, 0, (2, 0))


def test_a_query_of_another_dimension_is_refused() -> None:
    with pytest.raises(SpeckitError, match=r"E002 the query has the shape \(3,\), the store's vectors have \(16,\)"):
        VectorMatrix(*random_collection(4)).nearest(np.ones(3, np.float32), 5, Everything(), "memory")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, VectorMatrix]]:
    """Eighty memories of up to three chunks in SQLite and in a matrix; a tenth of the vectors are duplicates."""
    random = np.random.default_rng(8)
    with Database.open(tmp_path_factory.mktemp("matrix") / "store.db") as database:
        with database.write() as txn:
            for number in range(80):
                rows = random.normal(size=(1 + number % 3, SIZE))
                if number % 10 == 0:
                    rows[:] = 1.0
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                writer.put_document(txn, document(number, len(rows)), rows.astype(np.float32), 1.0, "m")
        # Every chunk has a vector, so that both come in the same order.
        yield (
            database,
            VectorMatrix(*loading.load_chunk_parents(database.reader()), loading.load_vectors(database.reader())[1]),
        )


def document(number: int, chunks: int) -> Document:
    passages = tuple(Chunk(text=f"passage {place}") for place in range(chunks))
    return Document(key=f"{number}", title="t", body="b", content_hash=f"{number}", chunks=passages)


@pytest.mark.requirement("C1.cosine")
def test_many_queries_at_once_have_the_chunks_of_each(
    stored: tuple[Database, VectorMatrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, matrix = stored
    monkeypatch.setattr("speckit_memory.memory.store.read_model.vectors.matrix.BLOCK", 7)
    rows = loading.load_vectors(database.reader())[1]
    # a state with removed rows, rows that equal one another, and rows behind the base
    later = matrix.replaced(np.array([3, 5]), np.arange(9_001, 9_012), np.full(11, 9_000), np.repeat(rows[4:5], 11, 0))
    for state, limit in ((matrix, 5), (later, 20), (later, 10_000)):
        found = state.nearest_chunks(rows[:6], limit)
        for query, (ids, similarity) in zip(rows[:6], found, strict=True):
            expected_ids, expected, _ = state.nearest(query, limit, Everything(), "chunk")
            np.testing.assert_array_equal(ids, expected_ids)
            np.testing.assert_array_equal(similarity, expected)


@pytest.mark.requirement("C1.cosine")
@pytest.mark.parametrize("share", [1.0, 0.5, 0.05])
def test_the_matrix_answers_as_sqlite_vec_does(stored: tuple[Database, VectorMatrix], share: float) -> None:
    database, matrix = stored
    chunks, parents = loading.load_chunk_parents(database.reader())
    random = np.random.default_rng(5)
    for _ in range(20):
        query = random.normal(size=SIZE).astype(np.float32)
        memories = np.unique(parents)[random.random(len(np.unique(parents))) < share]
        scope = Everything() if share == 1.0 else Only(memories)
        allowed = None if share == 1.0 else chunks[np.isin(parents, memories)]
        exact_ids, exact = vectors.nearest_exact(database.reader(), query, 25, allowed)
        ids, similarity, best = matrix.nearest(query, 25, scope, "chunk")
        # Between neighbours that differ by less than single precision can tell, sqlite-vec's order is chance.
        assert sorted(ids.tolist()) == sorted(exact_ids.tolist())
        np.testing.assert_allclose(similarity, exact, atol=1e-5)
        np.testing.assert_array_equal(ids, best)
