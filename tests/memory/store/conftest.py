"""Stores and documents for the tests of the store: real files, small vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from postgres_server import link_at
from storing.indexes import read_model

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.records import Chunk, Document

DIMENSIONS = 4
MODEL = "test-model"
CONTRACT = (
    *("test_consolidation", "test_edges", "test_link_targets", "test_near_duplicates", "test_working_memory"),
    "test_records_of_answers",
)
"""Modules whose tests hold for a store in SQLite and in PostgreSQL."""
CONTRACT_OF_PROOF = (
    *("test_changes", "test_embedding_cache", "test_fulltext", "test_stale_words", "test_surface", "test_vectors"),
    *("test_density", "test_lineage", "test_reader", "test_traversal"),
    *("test_many", "test_table_map", "test_writer"),
)
"""Further ones, which run over PostgreSQL in the proof tier."""


@pytest.fixture
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty store, of each engine for the tests of the contract."""
    path = tmp_path / "store.db"
    if getattr(request, "param", "sqlite") == "postgres":
        link_at(path)
    with Database.open(path) as database:
        yield database


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the tests of the contract over both engines."""
    module = metafunc.module.__name__.rpartition(".")[2]
    store = next((name for name in ("database", "evaluation") if name in metafunc.fixturenames), None)
    if store and module in (*CONTRACT, *CONTRACT_OF_PROOF):
        marks = () if module in CONTRACT else pytest.mark.proof
        metafunc.parametrize(store, ["sqlite", pytest.param("postgres", marks=marks)], indirect=True)


@pytest.fixture
def store_file(tmp_path: Path) -> Iterator[Database]:
    """An empty store in a file, for tests that observe SQLite's driver or change the schema."""
    with Database.open(tmp_path / "file.db") as database:
        yield database


@pytest.fixture
def model(database: Database) -> ReadModel:
    """The read model of that store."""
    return read_model(database)


@pytest.fixture(scope="session")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Database]:
    """Makes any number of empty stores, for tests that run many examples."""
    folder = tmp_path_factory.mktemp("stores")
    numbers = itertools.count()
    return lambda: Database.open(folder / f"{next(numbers)}.db")


@pytest.fixture(scope="session")
def document() -> Callable[..., Document]:
    """Makes a document from its key and the words of its passages."""

    def make(key: str, *passages: str, **facts: Any) -> Document:
        chunks = tuple(
            Chunk(text=words, first_line=line, last_line=line, tokens=tuple(words.split()))
            for line, words in enumerate(passages, 1)
        )
        defaults: dict[str, Any] = {
            "title": f"Title of {key}",
            "body": "\n".join(passages),
            "content_hash": f"hash of {passages}",
            "created_at": 100.0,
            "updated_at": 200.0,
        }
        return Document(key=key, chunks=chunks, **(defaults | facts))

    return make


@pytest.fixture(scope="session")
def unit() -> Callable[..., np.ndarray]:
    """Makes unit vectors, one per seed; equal seeds give equal vectors."""

    def make(*seeds: int, dimensions: int = DIMENSIONS) -> np.ndarray:
        rows = np.stack([np.random.default_rng(seed).normal(size=dimensions) for seed in seeds])
        made: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return made

    return make


@pytest.fixture(scope="session")
def dump() -> Callable[[Database], dict[str, list[tuple[Any, ...]]]]:
    """Reads every row of every table, those of the virtual tables' own storage included."""

    def read(database: Database) -> dict[str, list[tuple[Any, ...]]]:
        connection = database.reader()
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        tables = [name for name in tables if name not in ("commits", "workspaces")]  # number of commits, all stores
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in sorted(tables)}

    return read
