"""Ids of capabilities are for developers, who find them in docs/design.md: nothing that users read holds one."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import workspace_root

ROOT = workspace_root(Path(__file__).parent)
IDS = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8"))
ID = re.compile(rf"\b(?:{'|'.join(IDS)})\b")
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "design.md")]
ROOMS = ("config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server")
MODULES = sorted(
    file
    for folder in (*ROOMS, "src/speckit_memory/errors")
    for file in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in file.parts
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_for_users_holds_an_id(page: Path) -> None:
    assert ID.findall(page.read_text(encoding="utf-8")) == []


def said(file: Path) -> list[str]:
    """The texts in a module's code: messages, hints, descriptions of tools and parameters, and the help of commands.

    Other docstrings are read by developers, and so is the `features` of a component.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    helps = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.decorator_list and isinstance(node.body[0], ast.Expr)
    }
    features = {
        id(text)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "features"
        for text in ast.walk(node.value)
    }
    apart = (docstrings - helps if file.parent.name == "commands" else docstrings) | features
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart
    ]


def test_no_text_in_the_code_that_reaches_users_holds_an_id() -> None:
    spoken = {file.name: [text for text in said(file) if ID.search(text) and " " in text] for file in MODULES}

    assert sum(map(len, map(said, MODULES))) > 1000
    assert {name: texts for name, texts in spoken.items() if texts} == {}
