"""What the product imports is declared, or comes with what is declared, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = ("src", "config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server")
BY_NAME = {"sentence-transformers": {"sentence_transformers", "torch"}, "wordllama": set[str]()}
"""What is not installed for tests, and what is read as data."""
OF_TESTS = {"pytest", "hypothesis"}
"""What the contract suite needs, which runs in the environment of an extension's tests."""


def names(requirements: list[str]) -> set[str]:
    return {canonical(re.split(r"[\[<>=!~; ]", each)[0]) for each in requirements}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> dict[str, str]:
    """Packages that modules of the product import, each with one of the modules."""
    found: dict[str, str] = {}
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                packages = [name.name for name in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    packages = [node.module]
                found |= {name.partition(".")[0]: str(file.relative_to(ROOT)) for name in packages}
    return {name: file for name, file in found.items() if name not in {*sys.stdlib_module_names, "speckit_memory"}}


def test_the_product_imports_what_it_declares_and_nothing_else() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    declared = names(PROJECT["project"]["dependencies"]) | names([each for group in extras.values() for each in group])
    distributions = dict(packages_distributions())
    distributions |= {module: [name] for name, modules in BY_NAME.items() for module in modules}
    used = {canonical(name) for module in imported() for name in distributions.get(module, [module])}
    beside = names([each for name in declared - BY_NAME.keys() for each in requires(name) or []])

    assert used - declared - beside - OF_TESTS == set()
    assert declared - used == {"sqlite-vec", "wordllama"}  # opened as files, never imported


def test_the_environment_of_tests_has_every_extra_so_that_no_test_of_one_is_skipped() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = names([each for group in extras.values() for each in group]) - {"sentence-transformers"}
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))

    assert wanted <= names(PROJECT["dependency-groups"]["dev"])
    assert wanted <= locked


def test_an_installation_has_at_most_55_packages_and_none_that_draws_or_fills_templates() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    packages = dict(re.findall(r"^([\w.-]+)==([^\\\n]*)", lock, re.MULTILINE))
    elsewhere = {name for name, pin in packages.items() if "sys_platform ==" in pin}

    assert len(packages.keys() - elsewhere) <= 55
    assert not packages.keys() & {"matplotlib", "docutils", "jinja2", "pillow", "fonttools"}
