"""Who wrote a memory or added a link is recorded once, and goes wherever the memory goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from files import write_file
from postgres_server import server

from speckit_memory.config.workspace.settings import DB_VARIABLE, PRINCIPAL_VARIABLE
from speckit_memory.engine import Memory
from speckit_memory.server.views.memory_list import rows_of


def opened(root: Path, address: str, principal: str) -> Memory:
    environ = {DB_VARIABLE: address, PRINCIPAL_VARIABLE: principal}
    return Memory.open(root=root, environ=environ)


def authors(memory: Memory) -> dict[str, str]:
    return {each.key: each.created_by for each in memory.list()[0]}


@pytest.mark.parametrize("engine", ["file", "postgres"])
def test_the_first_writer_stays_the_author_in_every_copy(engine: str, tmp_path: Path) -> None:
    root = tmp_path / "work"
    address = f"{server()}&workspace=authors" if engine == "postgres" else str(root / "memory.db")
    write_file(root / "docs/a.md", "---\ncausalLinks: {supports: [b.md]}\n---\n# A\n\nText of a.\n")
    write_file(root / "docs/b.md", "# B\n\nText of b.\n")
    with opened(root, address, "anna") as anna:
        anna.index([root])
    write_file(root / "docs/b.md", "# B\n\nOther text of b.\n")
    write_file(root / "docs/c.md", "# C\n\nText of c.\n")
    expected = {"docs/a.md": "anna", "docs/b.md": "anna", "docs/c.md": "bob"}
    with opened(root, address, "bob") as bob:
        bob.index([root])
        bob.graph.add_edges([("docs/c.md", "supports", "docs/a.md", 0.5)])
        assert authors(bob) == expected
        assert {row["key"]: row["created_by"] for row in rows_of(bob.list()[0])} == expected
        lineage = json.dumps(bob.graph.lineage("docs/a.md").as_json())
        assert [lineage.count(f'"principal": "{name}"') for name in ("anna", "bob")] == [1, 1]

        bob.deletions.undelete(bob.deletions.delete("docs/a.md").name)
        assert authors(bob) == expected
        bob.checkpoints.create("before")
        bob.deletions.delete("docs/b.md")
        bob.checkpoints.restore("before")
        assert authors(bob) == expected
        bob.exchange.export(tmp_path / "out")

    (tmp_path / "other").mkdir()
    with opened(tmp_path / "other", str(tmp_path / "other.db"), "carl") as carl:
        carl.exchange.import_from(tmp_path / "out")
        assert authors(carl) == expected
