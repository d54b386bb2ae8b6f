"""Every code of the table is one that the product gives and that a test expects of it (feature T26)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import workspace_root
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES

ROOT = workspace_root(Path(__file__).parent)
ROOMS = ("config", "pipeline", "channels", "signals", "stages", "memory", "engine", "evaluation", "server", "src")
CODE = re.compile(r"\bE\d{3}\b")
EXPECTING = ("pytest.raises", "pytest.mark.parametrize", "refused")
CATEGORIES = {"embedding", "file", "database", "parameter", "search", "checkpoint", "memory", "validation",
              "configuration", "internal"}  # fmt: skip


def texts(folders: tuple[str, ...], *left_out: str) -> Iterator[str]:
    """The modules below these folders that name a code."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not any(file.is_relative_to(ROOT / one) for one in left_out) and "__pycache__" not in file.parts:
                text = file.read_text(encoding="utf-8")
                if CODE.search(text):
                    yield text


def strings(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str | bytes):
            yield part.value if isinstance(part.value, str) else part.value.decode("latin-1")


def denies(node: ast.AST) -> bool:
    """Whether an assertion says that something is not so."""
    return any(
        isinstance(part, ast.Compare) and any(isinstance(sign, ast.NotEq | ast.NotIn) for sign in part.ops)
        for part in ast.walk(node)
    )


def expected(text: str) -> set[str]:
    """The codes that the tests of a module expect: in assertions, in `raises` or `refused`, in the cases of a test, and
    in constants that these name."""
    found: set[str] = set()
    module = ast.parse(text)
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Assert) and not denies(node):
            parts = [node.test]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(EXPECTING):
            parts = [*node.args, *node.keywords]
        names = {part.id for each in parts for part in ast.walk(each) if isinstance(part, ast.Name)}
        parts += [constants[name] for name in sorted(names & constants.keys())]
        found.update(code for part in parts for string in strings(part) for code in CODE.findall(string))
    return found


@pytest.fixture(scope="module")
def tested() -> set[str]:
    # what is said of the table itself, such as here, shows no code of it to be given
    found: set[str] = set()
    for text in texts(("tests",), "tests/errors"):
        found |= expected(text)
    return found


@pytest.mark.requirement("T26.codes")
def test_there_are_more_than_forty_codes_in_ten_categories() -> None:
    assert len(CODES) > 40
    assert {code.category for code in CODES.values()} == CATEGORIES


@pytest.mark.requirement("T26.codes", "T26.again")
@pytest.mark.parametrize("name", sorted(CODES))
def test_every_code_says_how_bad_it_is_and_whether_to_try_again(name: str) -> None:
    code = CODES[name]
    assert code.severity in ("low", "medium", "high", "critical")
    assert code.category in CATEGORIES
    assert code.retryable is True or code.retryable is False
    assert code.hint
    assert code.actions
    # what the caller has to change first is tried again in vain
    assert not (code.retryable and code.callers_fault)
    told = SpeckitError(name, "it happened").as_json()["error"]
    assert (told["severity"], told["retryable"]) == (code.severity, code.retryable)


@pytest.mark.requirement("T26.raised")
def test_every_code_is_given_by_the_product() -> None:
    given = {
        code
        for text in texts(ROOMS, "src/speckit_memory/errors/codes.py")
        for string in strings(ast.parse(text))
        for code in CODE.findall(string)
    }
    assert sorted(set(CODES) - given) == []


@pytest.mark.requirement("T26.raised")
@pytest.mark.parametrize("code", sorted(CODES))
def test_some_test_expects_the_code(tested: set[str], code: str) -> None:
    assert code in tested


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ('assert error.code == "E001"', {"E001"}),
        ('assert error.code != "E001"', set()),
        ('assert "E001" not in text', set()),
        ('assert text == f"E001 {path}: E002"', {"E001", "E002"}),
        ('CODE = "E001"', set()),
        ('CODE = "E001"\nassert error.code == CODE', {"E001"}),
        ('assert err.count(b"E001") == 1', {"E001"}),
        ('with pytest.raises(SpeckitError, match=r"^E001 no"):\n    pass', {"E001"}),
        ('call(root, ["init"]).refused("E001")["message"]', {"E001"}),
        ('with refused("E001", match="no"):\n    pass', {"E001"}),
        ('@pytest.mark.parametrize(("code",), [("E001",)])\ndef test() -> None: ...', {"E001"}),
    ],
)
def test_what_counts_as_an_expectation(line: str, codes: set[str]) -> None:
    assert expected(line) == codes
