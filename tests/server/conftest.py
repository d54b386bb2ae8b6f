"""Runs the console script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import Run, call


@pytest.fixture
def run(indexed: Path) -> Run:
    """Runs the console script in the indexed workspace: for commands that only read."""
    return lambda *arguments, **more: call(indexed, arguments, **more)
