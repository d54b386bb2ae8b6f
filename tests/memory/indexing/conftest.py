"""A workspace folder, a store and an indexer, all real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from files import write_file

from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Callable[[str, str], Path]:
    def put(key: str, text: str) -> Path:
        return write_file(root / key, text)

    return put


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture
def indexer(database: Database, embedder: StaticEmbedder, root: Path) -> Indexer:
    return Indexer(database, embedder, Analyser(), root)
