"""Product code and hand-written pages keep to plain English: phrases that a reader has to read twice are counted."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from speckit_memory.config.workspace.settings import workspace_root

ROOT = workspace_root(Path(__file__).parent)
ROOMS = ("config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server", "src")
MADE_BY_SCRIPTS = {"cli.md", "components.md", "errors.md"}
PAGES = [page for folder in (ROOT, ROOT / "docs") for page in folder.glob("*.md") if page.name not in MADE_BY_SCRIPTS]
MODULES = [file for room in ROOMS for file in (ROOT / room).rglob("*.py") if "__pycache__" not in file.parts]
HABITS = re.compile(
    r"\b(?:"
    r"beside"  # next to, in addition to, at the same time as
    r"|whoever|somebody"  # name the user, the caller, the process
    r"|so many"  # the number, a limit
    r"|of (?:its|their) own"  # its own, separate
    r"|(?:is|are) told|amiss|put away"  # is reported, wrong, archived
    r"|what (?:\w+ ){1,5}is what"  # the subject first
    r")\b",
    re.IGNORECASE,
)


def texts(file: Path) -> Iterator[str]:
    """The comments, docstrings and other string constants of a module."""
    with file.open("rb") as lines:
        yield from (token.string for token in tokenize.tokenize(lines.readline) if token.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def occurrences(name: str, text: str) -> list[str]:
    return [f"{name}: {match[0]}" for match in HABITS.finditer(" ".join(text.split()))]


def test_hand_written_pages_have_few_phrases_that_are_read_twice() -> None:
    phrases = [phrase for page in PAGES for phrase in occurrences(page.name, page.read_text(encoding="utf-8"))]

    assert len(PAGES) > 25
    assert len(phrases) <= 20, phrases


def test_product_code_has_few_phrases_that_are_read_twice() -> None:
    phrases = [
        phrase for file in MODULES for text in texts(file) for phrase in occurrences(str(file.relative_to(ROOT)), text)
    ]

    assert len(MODULES) > 500
    assert len(phrases) <= 60, phrases


def test_each_habit_is_recognised_across_lines() -> None:
    text = "What counts\nis what is told beside it, of its\nown; whoever put away so many is amiss, says somebody."

    assert len(occurrences("page", text)) == 9
