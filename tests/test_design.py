"""The design page tells of the code as it is: its walk, its map of capabilities and its list of what is large."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import workspace_root

ROOT = workspace_root(Path(__file__).parent)
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
MANIFEST = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8"))
ROOMS = ("config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server")
MODULES = sorted(
    file
    for folder in (*ROOMS, "src/speckit_memory/errors")
    for file in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in file.parts
)


def modules_imported(file: Path) -> set[Path]:
    """The modules of the product that one imports, for type checkers included; packages themselves do not count."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            room, _, rest = name.removeprefix("speckit_memory.").partition(".")
            base = ROOT / "src" / "speckit_memory" / "errors" if room == "errors" else ROOT / room
            found.add(base.joinpath(*rest.split(".")).with_suffix(".py"))
    return found & set(MODULES)


def part(name: str) -> str:
    """One section of the page."""
    return PAGE.partition(f"<!-- ANCHOR:{name} -->")[2].partition(f"<!-- /ANCHOR:{name} -->")[0]


NAMED = sorted(set(re.findall(rf"`((?:{'|'.join(ROOMS)})\.[\w.]+)`", part("walk"))))


def test_no_module_imports_itself_by_way_of_others() -> None:
    imports = {file: modules_imported(file) for file in MODULES if file.name != "__init__.py"}

    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def test_a_folder_has_at_most_twenty_modules() -> None:
    sizes = Counter(file.parent for file in MODULES if file.name != "__init__.py")

    assert [folder for folder, size in sizes.items() if size > 20] == []


def test_a_public_function_of_more_than_three_parameters_describes_each() -> None:
    """A section `Args:` is there; that it is complete is ruff's D417."""
    silent = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in MODULES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        if len({a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}) > 3
        if "Args:" not in (ast.get_docstring(node) or "Args:")
    ]

    assert silent == []


def test_the_walk_passes_all_four_stages() -> None:
    rooms = {name.partition(".")[0] for name in NAMED}

    assert len(NAMED) > 40
    assert rooms == {"config", "pipeline", "channels", "signals", "stages", "memory", "engine", "server"}


@pytest.mark.parametrize("name", NAMED)
def test_everything_that_the_walk_names_is_there(name: str) -> None:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if (ROOT.joinpath(*parts[:end])).with_suffix(".py").is_file():
            break
    found: object = import_module("speckit_memory." + ".".join(parts[:end]))
    for attribute in parts[end:]:
        found = getattr(found, attribute)


def test_the_map_holds_every_capability_with_its_state_and_modules_that_exist() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part("features").splitlines() if "|" in line
    ]
    told = {row[0]: row[1:] for row in rows[2:]}

    assert list(told) == list(MANIFEST)
    for name, (statement, where, state) in told.items():
        assert statement == MANIFEST[name]["statement"], name
        assert state == ("pending" if MANIFEST[name].get("pending") else "built"), name
        files = re.findall(r"`([^`]+)`", where)
        assert bool(files) is (state == "built"), name
        assert [file for file in files if not (ROOT / file).is_file()] == [], name


def test_the_largest_modules_are_those_that_the_page_argues_for() -> None:
    lines = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8").count("\n") for file in MODULES}
    largest = sorted(lines, key=lambda file: -lines[file])[:3]

    argued = re.findall(r"^- `([^`]+\.py)`", part("sizes"), re.MULTILINE)
    assert sorted(argued) == sorted(largest)


def test_the_longest_functions_are_those_that_the_page_argues_for() -> None:
    lengths = {
        (node.name, file.relative_to(ROOT).as_posix()): (node.end_lineno or 0) - node.lineno
        for file in MODULES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    longest = sorted(lengths, key=lambda name: -lengths[name])[:5]

    argued = [
        (function, file)
        for names, file in re.findall(r"^- ((?:`\w+`(?: and )?)+) in `([^`]+)`", part("sizes"), re.MULTILINE)
        for function in re.findall(r"`(\w+)`", names)
    ]
    assert sorted(argued) == sorted(longest)
