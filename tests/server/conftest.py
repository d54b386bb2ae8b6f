"""Real files, and a store that is built once and copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.server.doors import Run, call, indexed_workspace


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose documents are indexed. Tests must not change it."""
    return indexed_workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture
def workspace(indexed: Path, tmp_path: Path) -> Path:
    """A copy of the indexed workspace, to be changed at will."""
    return Path(shutil.copytree(indexed, tmp_path / "workspace"))


@pytest.fixture
def run(indexed: Path) -> Run:
    """Runs the console script in the indexed workspace: for commands that only read."""
    return lambda *arguments, **more: call(indexed, arguments, **more)
