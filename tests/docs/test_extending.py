"""The extension that the page shows uses only what extensions may rely on, and registers as it stands."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

from packaging_tests.extension import files, written
from speckit_memory import pipeline
from speckit_memory.pipeline import Registry, testing

OFFERED = {"speckit_memory.pipeline": pipeline.__all__, "speckit_memory.pipeline.testing": testing.__all__}


@pytest.mark.parametrize("name", [name for name in files() if name.endswith(".py")])
def test_the_page_imports_from_the_two_public_modules_alone(name: str) -> None:
    for node in ast.walk(ast.parse(files()[name])):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("speckit_memory") for alias in node.names)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("speckit_memory"):
            assert {alias.name for alias in node.names} <= set(OFFERED[str(node.module)])


def test_what_the_page_shows_registers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(written(tmp_path)))
    registry = Registry()
    import_module("speckit_freshness").register(registry)

    assert [entry.name for entry in registry] == ["stale", "titled", "freshness"]
    assert [entry.key for file in registry.flag_files() for entry in file.entries] == ["SPECKIT_FRESHNESS_SIGNAL"]
    for module in [name for name in sys.modules if name.partition(".")[0] == "speckit_freshness"]:
        monkeypatch.delitem(sys.modules, module)
