from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from answered import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import loading, reader
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]
Unit = Callable[..., np.ndarray]


def fill(database: Database, document: Make, rows: np.ndarray) -> None:
    """One memory of one passage per row, with ids from 1."""
    with database.write() as txn:
        for number, row in enumerate(rows, 1):
            writer.put_document(txn, document(f"k{number}", "a"), row[None, :], 1.0, "m")


def expected(rows: np.ndarray, query: np.ndarray, limit: int, allowed: list[int]) -> list[tuple[int, float]]:
    """The answer by plain arithmetic, to six digits."""
    scores = {number: float(row.astype(float) @ query.astype(float)) for number, row in enumerate(rows, 1)}
    chosen = [(number, round(scores[number], 6)) for number in allowed if rows[number - 1].any()]
    return sorted(chosen, key=lambda item: (-item[1], item[0]))[:limit]


def answer(database: Database, query: np.ndarray, limit: int, allowed: list[int] | None) -> list[tuple[int, float]]:
    ids, similarity = vectors.nearest_exact(
        database.reader(), query, limit, None if allowed is None else np.array(allowed, np.int64)
    )
    assert ids.dtype == np.int64
    assert similarity.dtype == np.float64
    # Equal to six digits means equal here: the driver computes in single precision.
    return sorted(zip(ids.tolist(), similarity.round(6).tolist(), strict=True), key=lambda item: (-item[1], item[0]))


@pytest.mark.requirement("C1")
def test_the_nearest_are_those_of_plain_cosine(database: Database, document: Make, unit: Unit) -> None:
    rows = unit(*range(50), dimensions=32)
    fill(database, document, rows)
    query = unit(1000, dimensions=32)[0]
    for limit in (0, 1, 7, 50, 60):
        for allowed in (None, [], [3], [9, 4, 44, 777], list(range(1, 51, 2))):
            within = list(range(1, 51)) if allowed is None else sorted(set(allowed) - {777})
            got = answer(database, query, limit, allowed)
            assert [item[0] for item in got] == [item[0] for item in expected(rows, query, limit, within)]
            assert [item[1] for item in got] == pytest.approx(
                [item[1] for item in expected(rows, query, limit, within)], abs=1e-5
            )


def test_equal_similarities_are_ordered_by_id_even_where_the_limit_cuts(
    database: Database, document: Make, unit: Unit
) -> None:
    row = unit(1)[0]
    fill(database, document, np.stack([unit(2)[0], *[row] * 40]))
    assert vectors.nearest_exact(database.reader(), row, 3)[0].tolist() == [2, 3, 4]
    allowed = np.array([41, 40, 39, 38, 1])
    assert vectors.nearest_exact(database.reader(), row, 2, allowed)[0].tolist() == [38, 39]


def test_zero_vectors_are_near_to_nothing(database: Database, document: Make, unit: Unit) -> None:
    rows = np.stack([np.zeros(4, np.float32), unit(1)[0], -unit(1)[0]])
    fill(database, document, rows)
    connection = database.reader()
    ids, similarity = vectors.nearest_exact(connection, unit(1)[0], 5)
    assert ids.tolist() == [2, 3]
    assert similarity.tolist() == pytest.approx([1.0, -1.0])
    assert vectors.nearest_exact(connection, rows[0], 5)[0].tolist() == []
    assert loading.load_vectors(connection)[0].tolist() == [2, 3]
    assert reader.statistics(connection).pending_embeddings == 0
    assert database.check() == []


def test_a_store_without_vectors_answers_with_nothing(database: Database, unit: Unit) -> None:
    ids, similarity = vectors.nearest_exact(database.reader(), unit(1)[0], 5)
    assert (ids.tolist(), similarity.tolist(), vectors.dimensions(database.reader())) == ([], [], 0)
    assert loading.load_vectors(database.reader())[1].shape == (0, 0)


@pytest.mark.parametrize(("limit", "length", "code"), [(-1, 4, "E032"), (4097, 4, "E032"), (5, 3, "E002")])
def test_a_question_that_makes_no_sense_is_refused(
    database: Database, document: Make, unit: Unit, limit: int, length: int, code: str
) -> None:
    fill(database, document, unit(1))
    with refused(code):
        vectors.nearest_exact(database.reader(), unit(1, dimensions=length)[0], limit)


def test_another_model_can_take_over_once_all_vectors_are_forgotten(
    database: Database, document: Make, unit: Unit
) -> None:
    fill(database, document, unit(1, 2))
    with database.write() as txn:
        vectors.forget_all(txn)
        vectors.forget_all(txn)
    connection = database.reader()
    assert reader.statistics(connection).pending_embeddings == 2
    assert loading.load_vectors(connection)[0].tolist() == []
    assert database.check() == []

    with database.write() as txn:
        writer.set_vectors(txn, {1: unit(1, dimensions=7)[0], 2: unit(2, dimensions=7)[0]}, "another")
    statistics = reader.statistics(connection)
    assert (statistics.embedding_model, statistics.dimensions, statistics.pending_embeddings) == ("another", 7, 0)
    assert database.check() == []


@given(
    st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3), min_size=1, max_size=12),
    st.integers(1, 12),
    st.lists(st.integers(1, 12), unique=True),
)
@settings(max_examples=examples(0.14))
def test_ties_are_cut_like_a_full_sort_would(
    new_database: Callable[[], Database], document: Make, directions: list[list[int]], limit: int, scope: list[int]
) -> None:
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    rows = (np.array(directions) / np.where(lengths, lengths, 1)).astype(np.float32)
    query = np.array([1, 0, 0], np.float32)
    allowed = [number for number in scope if number <= len(rows)]
    with new_database() as database:
        fill(database, document, rows)
        assert answer(database, query, limit, scope) == expected(rows, query, limit, allowed)


def test_vectors_of_chunks_come_in_the_order_of_their_ids_however_an_engine_joins_them(
    database: Database, document: Make, unit: Unit
) -> None:
    rows = unit(*range(40))
    fill(database, document, rows)
    connection: Any = database.reader()
    if database.shared:  # the plan that it prefers for many vectors, over rows that lie in another order
        connection.fetch("UPDATE chunk_vectors SET embedding = embedding WHERE rowid < 20", [])
        for kind in ("nestloop", "mergejoin", "indexscan", "bitmapscan"):
            connection.fetch(f"SELECT set_config('enable_{kind}', 'off', false)", [])
    ids, found = loading.load_vectors_of_chunks(connection, np.array([31, 2], np.int64))
    assert ids.tolist() == [2, 31]
    assert np.array_equal(found, rows[ids - 1])
