"""A component that is none of its role type-checks in no table of the assembly, and in no registration either."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from speckit_memory.engine import components
from speckit_memory.pipeline.roles.contracts import Role

HEADER = """\
from typing import Any, ClassVar, Literal
from speckit_memory.engine import components
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.model.columns import Candidates, Fused, Hits, Notes, Plan, Pool, Query, Rescored
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.roles.registry import Registry

registry = Registry()
"""
METHODS = {
    Role.UNDERSTANDER: ("UNDERSTANDERS", "understand", "query: Query, plan: Plan, store: Store", "Plan | Unavailable"),
    Role.CHANNEL: ("CHANNELS", "search", "query: Query, limit: int, store: Store", "Hits | Unavailable"),
    Role.RECOVERER: ("RECOVERERS", "recover", "query: Query, plan: Plan, store: Store", "Plan | Unavailable"),
    Role.FUSER: ("FUSERS", "fuse", "query: Query, candidates: Candidates", "Fused | Unavailable"),
    Role.SIGNAL: ("SIGNALS", "evidence", "query: Query, pool: Pool, store: Store", "Column | Unavailable"),
    Role.RERANKER: ("RERANKERS", "rerank", "query: Query, pool: Pool, store: Store", "Rescored | Unavailable"),
    Role.ANNOTATOR: ("ANNOTATORS", "annotate", "query: Query, ranking: Ranking, store: Store", "Notes | Unavailable"),
}


def classes(role: Role) -> str:
    """A component of the role, and three that differ in one thing, each in the role's table and registered."""
    table, method, takes, gives = METHODS[role]
    first, rest = takes.split(", ", 1)
    variants = {
        "Right": (takes, gives, ""),
        "Answering": (takes, "list[int]", "  # refused"),
        "Asking": (f"query: bytes, {rest}", gives, "  # refused"),
        "Fewer": (first, gives, "  # refused"),
    }
    return "".join(
        f"""
class {name}{role.title()}:
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: Any) -> None: ...

    def {method}(self, {taken}) -> {given}:
        raise NotImplementedError

components.{table} = (*components.{table}, {name}{role.title()}){verdict}
registry.add(Role.{role.name}, {name}{role.title()}, "name"){verdict}
"""
        for name, (taken, given, verdict) in variants.items()
    )


@pytest.mark.requirement("P2")
@pytest.mark.usefixtures("processes")
def test_a_component_that_is_none_of_its_role_does_not_type_check(tmp_path: Path) -> None:
    file = tmp_path / "roles.py"
    file.write_text(HEADER + "".join(classes(role) for role in Role), encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = [number for number, line in enumerate(lines, 1) if line.endswith("# refused")]
    assert len(expected) == len(Role) * 3 * 2

    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(file)]
    checked = subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=False)

    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == expected, checked.stdout + checked.stderr


def test_every_table_is_registered_under_its_role() -> None:
    listed = [(role, component) for role, (table, *_) in METHODS.items() for component in getattr(components, table)]

    assert list(components.COMPONENTS) == listed
    assert {(entry.role, entry.component) for entry in components.registry() if not entry.extension} == set(listed)
