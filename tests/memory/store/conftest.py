"""Stores and documents for the tests of the store: real files, small vectors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from storing.indexes import read_model

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.records import Chunk, Document

DIMENSIONS = 4
MODEL = "test-model"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty store."""
    with Database.open(tmp_path / "store.db") as database:
        yield database


@pytest.fixture
def store_file(tmp_path: Path, in_a_file: None) -> Iterator[Database]:
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
