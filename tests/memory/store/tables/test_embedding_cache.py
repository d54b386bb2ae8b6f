from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.vectors import embedding_cache

Unit = Callable[..., np.ndarray]


def fill(database: Database, unit: Unit, model: str, hashes: list[str], now: float) -> None:
    with database.write() as txn:
        embedding_cache.store(txn, model, {h: unit(ord(h))[0] for h in hashes}, now)


def held(database: Database) -> list[tuple[object, ...]]:
    """How many vectors are cached, and when the one longest unused was used last."""
    return database.reader().execute("SELECT count(*), min(last_used_at) FROM embedding_cache").fetchall()


@pytest.mark.requirement("I7.key")
def test_a_vector_is_found_by_the_hash_of_its_text_and_its_model(database: Database, unit: Unit) -> None:
    fill(database, unit, "m", ["a", "b"], 1.0)
    fill(database, unit, "n", ["c"], 1.0)
    found = embedding_cache.lookup(database.reader(), "m", ["a", "b", "c", "d"])
    assert {key: vector.tolist() for key, vector in found.items()} == {
        "a": unit(ord("a"))[0].tolist(),
        "b": unit(ord("b"))[0].tolist(),
    }
    assert found["a"].dtype == np.float32
    assert embedding_cache.lookup(database.reader(), "m", []) == {}


@pytest.mark.requirement("I7")
def test_looking_up_writes_nothing(store_file: Database, unit: Unit) -> None:
    fill(store_file, unit, "m", ["a"], 1.0)
    before = store_file.reader().total_changes()
    embedding_cache.lookup(store_file.reader(), "m", ["a"])
    assert store_file.reader().total_changes() == before


@pytest.mark.requirement("I7.age")
def test_what_was_not_used_for_long_is_evicted(database: Database, unit: Unit) -> None:
    fill(database, unit, "m", ["a", "b", "c"], 1.0)
    fill(database, unit, "m", ["c"], 5.0)
    with database.write() as txn:
        embedding_cache.touch(txn, "m", ["b"], 4.0)
        embedding_cache.touch(txn, "n", ["a"], 9.0)
    assert held(database) == [(3, 1.0)]
    with database.write() as txn:
        assert embedding_cache.evict(txn, 4.0) == 1
        assert embedding_cache.evict(txn, 4.0) == 0
    assert sorted(embedding_cache.lookup(database.reader(), "m", "abc")) == ["b", "c"]
    assert held(database) == [(2, 4.0)]
