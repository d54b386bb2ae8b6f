"""Fixtures for tests of the frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from frame.doubles import SmallStore
from storing.project import live, project, write

from speckit_memory.engine import Memory
from speckit_memory.pipeline.ports import Store

NOW = 1_800_000_000.0


@pytest.fixture
def store() -> Store:
    return cast("Store", SmallStore())


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A project of some fifty memories in folders, of all tiers, with links and triggers."""
    root = tmp_path_factory.mktemp("project")
    write(root, NOW)
    with project(root, {}) as opened:
        opened.index([root])
        live(opened, NOW)
        yield opened
