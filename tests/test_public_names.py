"""What `from speckit_memory import …` gives, to programs and to type checkers."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import speckit_memory
from speckit_memory import Memory, SpeckitError, results

PAGE = Path(speckit_memory.__file__)
ASIDE = {
    "Database",
    "Embedder",
    "Analyser",
    "Store",
    "Pipeline",
    "Settings",
    "Outcome",
    "RecordedRequest",
    "Promotion",
    "ReadModel",
}
"""Parts of the works that an expert may reach through a memory, and the columns behind an answer."""


@pytest.mark.usefixtures("processes")
def test_asking_for_the_package_and_its_errors_loads_neither_numpy_nor_a_model() -> None:
    code = "import sys, speckit_memory; speckit_memory.NotFoundError; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "speckit_memory.errors" in loaded
    assert not {"numpy", "apsw", "wordllama", "tokenizers", "structlog", "speckit_memory.engine"} & set(loaded)


def test_type_checkers_are_told_of_the_same_names_from_the_same_modules() -> None:
    [block] = [node for node in ast.walk(ast.parse(PAGE.read_text())) if isinstance(node, ast.If)][:1]
    told = {
        alias.name: f"{node.module}".removeprefix("speckit_memory.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }

    assert told == speckit_memory._HOMES
    assert PAGE.with_name("py.typed").is_file()


@pytest.mark.parametrize("name", speckit_memory.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(speckit_memory, name).__name__ == name
    assert name in dir(speckit_memory)


def test_a_name_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match="'Memories'"):
        speckit_memory.Memories  # noqa: B018


def test_all_errors_are_caught_by_one_name() -> None:
    errors = [getattr(speckit_memory, name) for name in speckit_memory.__all__ if name.endswith("Error")]

    assert len(errors) > 9
    assert all(issubclass(error, SpeckitError) for error in errors)


def test_what_public_methods_return_and_what_that_holds_has_a_public_name() -> None:
    services = [
        getattr(import_module(f"speckit_memory.engine.api.{name}"), kind)
        for name, kind in Memory.__annotations__.items()
    ]
    assert len(services) == 14
    # what a search does not need is imported by the methods that do, and named by what is public
    methods = [method for kind in (Memory, *services) for method in _public_methods(kind)]
    pending = [
        kind for method in methods for kind in _classes(typing.get_type_hints(method, localns=_Public()).get("return"))
    ]
    seen: set[type] = set()
    while pending:
        kind = pending.pop()
        if kind in seen or kind.__name__ in ASIDE or not kind.__module__.startswith("speckit_memory"):
            continue
        seen.add(kind)
        assert kind.__name__ in PUBLIC, kind
        if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
            pending += [
                part for hint in typing.get_type_hints(kind, localns=_Public()).values() for part in _classes(hint)
            ]
    names = {kind.__name__ for kind in seen}
    assert {"SearchResult", "SearchNotes", "MemoryRecord", "HealthReport", "SearchCost", "NamedEdge"} <= names


def test_the_root_names_the_everyday_things_and_results_the_rest() -> None:
    there = {name for name in vars(results) if name[0].isupper()}

    assert len(speckit_memory.__all__) < 36
    assert not there & set(speckit_memory.__all__)


def _public_methods(kind: type) -> Iterator[Any]:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            yield method


PUBLIC = {name: getattr(speckit_memory, name) for name in speckit_memory.__all__} | vars(results)


class _Public(dict[str, Any]):
    """The public names."""

    def __missing__(self, name: str) -> Any:
        if name not in PUBLIC:
            raise KeyError(name)
        return PUBLIC[name]


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for part in typing.get_args(hint):
        yield from _classes(part)
