"""The wheel that all tests of this folder install."""

from __future__ import annotations

from pathlib import Path

import pytest

from packaging_tests.building import ROOT, built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("dist"))
