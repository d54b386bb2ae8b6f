from __future__ import annotations

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.schema.schema import LAST_PART
from speckit_memory.memory.store.tables.graph.link_targets import candidate_keys, last_part

KEYS = {"docs/a.md", "docs/x/b.md", "b.md.txt", "one/plan.md", "two/plan.md", "docs/new.md", "d/docs/x/deep.md"}


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("docs/a.md", ["docs/a.md"]),
        ("../a.md", ["docs/a.md"]),
        ("b.md", ["docs/x/b.md"]),
        ("./new.md", []),
        ("new.md", ["docs/new.md"]),
        ("./deep.md", ["d/docs/x/deep.md"]),
        ("plan.md", ["one/plan.md", "two/plan.md"]),
        ("two/plan.md", ["two/plan.md"]),
        ("lan.md", []),
    ],
)
@pytest.mark.requirement("I3")
def test_a_target_is_a_key_or_a_path_from_the_document_or_the_end_of_keys(target: str, found: list[str]) -> None:
    assert candidate_keys(target, "docs/x/note.md", KEYS) == found


def test_a_document_at_the_root_has_paths_too() -> None:
    assert candidate_keys("./docs/../top.md", "note.md", {"top.md", "docs/top.md"}) == ["top.md"]


@pytest.mark.parametrize("path", ["", "a", "a/b", "a/a/a", "/", "a/", "//b", "b/é/b.b", "a b/b a", "ab/ba/b"])
def test_the_store_and_the_program_agree_about_the_last_part_of_a_path(database: Database, path: str) -> None:
    assert value(database.reader(), f"SELECT {LAST_PART.format('?1')}", (path,)) == last_part(path)
