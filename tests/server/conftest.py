"""Runs the console script."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from speckit_memory.engine.documents import path_patterns
from tests.server.doors import Run, call


@pytest.fixture
def run(indexed: Path) -> Run:
    """Runs the console script in the indexed workspace: for commands that only read."""
    return lambda *arguments, **more: call(indexed, arguments, **more)


@pytest.fixture
def patterns_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns of folders are tried in this process, not in one of their own: for tests of what their matches do."""

    def tried(patterns: Sequence[str], paths: Sequence[str]) -> tuple[list[Any], bool]:
        asked, told = io.StringIO(json.dumps({"patterns": patterns, "paths": paths})), io.StringIO()
        with warnings.catch_warnings(), mock.patch.multiple(sys, stdin=asked, stdout=told):
            exec(path_patterns.SCRIPT, {})
        return [json.loads(line) for line in told.getvalue().splitlines()], False

    monkeypatch.setattr(path_patterns, "_tried", tried)
