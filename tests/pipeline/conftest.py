"""Fixtures for tests of the frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from frame.doubles import SmallStore
from storing.project import living

from speckit_memory.engine import Memory
from speckit_memory.pipeline.ports import Store

NOW = 1_800_000_000.0


@pytest.fixture
def store() -> Store:
    return cast("Store", SmallStore())


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A project of some fifty memories in folders, of all tiers, with links and triggers."""
    with living(tmp_path_factory.mktemp("project"), NOW) as opened:
        yield opened
