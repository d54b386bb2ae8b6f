"""Runs the console script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from speckit_memory.engine import folder_ranking
from tests.server.doors import Run, call


@pytest.fixture
def run(indexed: Path) -> Run:
    """Runs the console script in the indexed workspace: for commands that only read."""
    return lambda *arguments, **more: call(indexed, arguments, **more)


@pytest.fixture
def patterns_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns of folders are tried in this process: for tests of what is done with their matches."""

    def matching(patterns: Sequence[str], paths: Iterable[str]) -> set[str]:
        return {path for path in paths if any(re.search(pattern, path) for pattern in patterns)}

    monkeypatch.setattr(folder_ranking, "matching", matching)
