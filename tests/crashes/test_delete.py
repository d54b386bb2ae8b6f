"""A deletion, or an undoing of it, that crashes anywhere is finished by the next one, and later changes stay."""

from __future__ import annotations

import time
from pathlib import Path
from unittest.mock import patch

import pytest
from crashing import every_point

from speckit_memory.engine import Memory
from speckit_memory.errors import NotFoundError
from tests.attacks.fuzz.living import opened

A, B, OTHER = "docs/del/a.md", "docs/del/b.md", "docs/other.md"
TEXTS = {
    A: "---\nimportance_tier: temporary\n---\n# A\n\nKangaroos have pouches, [see](b.md).\n",
    B: "---\nimportance_tier: temporary\n---\n# B\n\nWombats dig burrows, unlike kangaroos.\n",
    OTHER: "---\ncausalLinks: {supports: [del/a.md]}\n---\n# Other\n\nEmus run past.\n",
}
LATER = time.time() + 7200.0
"""When whoever began to delete is known to be gone."""
CHANGED = 0.6
"""The confidence of a memory that was found useful once."""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A workspace with a folder to be deleted."""
    root = tmp_path / "whole"
    for key, text in TEXTS.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text(text)
    with opened(root) as memory:
        memory.index([root / "docs"])
        memory.graph.add_edges([(A, "caused", B, 0.7)])
    return root


def links(memory: Memory) -> set[tuple[str, str, str]]:
    return {
        (link.source, link.relation, link.target)
        for key in (A, B)
        for group in memory.graph.lineage(key).groups.values()
        for link in group
    }


def require_as_before(memory: Memory, root: Path, wanted: set[tuple[str, str, str]], crash: object) -> None:
    """Holds the store and the files to what they were before the deletion."""
    assert links(memory) == wanted, crash
    assert memory.deletions.list() == [], crash
    report = memory.index([root / "docs"])
    assert (report.created, report.updated, report.deleted) == ([], [], []), crash
    assert memory.lifecycle.check() == (), crash
    assert {str(file.relative_to(root)): file.read_text() for file in root.glob("docs/**/*.md")} == TEXTS, crash
    assert [file.name for file in (root / "memory.db.deleted").glob("*")] in ([], [".lock"]), crash


@pytest.mark.requirement("T9.undone")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_a_deletion_crashes_all_is_there_or_comes_back(whole: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    with opened(whole) as memory:
        wanted = links(memory)

    def delete() -> None:
        with opened(root) as memory:
            memory.deletions.delete_tier("temporary", confirm=True, skip_checkpoint=True)

    seen = set()
    for crash in every_point(whole, root, delete):
        with opened(root) as memory, patch.object(time, "time", lambda: LATER):
            assert memory.lifecycle.check() == (), crash
            there = {one.key for one in memory.list(limit=10)[0]} - {OTHER}
            assert there in (set(), {A, B}), crash
            away = [key for key in (A, B) if not (root / key).exists()]
            names = [one.name for one in memory.deletions.list()]
            seen.add((bool(there), len(away), len(names)))
            memory.deletions.undelete(
                names[0] if names else memory.deletions.delete_folder("docs/del", confirm=True).name
            )
            require_as_before(memory, root, wanted, crash)
    assert seen == {(True, 0, 0), (True, 1, 1), (True, 2, 1), (False, 2, 1)}


@pytest.mark.requirement("T9.undone")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_an_undoing_crashes_the_next_one_finishes_it_and_later_changes_stay(
    whole: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    with opened(whole) as memory:
        wanted = links(memory)
        assert (A, "caused", B) in wanted
        name = memory.deletions.delete_folder("docs/del", confirm=True).name

    def undelete() -> None:
        with opened(root) as memory:
            memory.deletions.undelete(name)

    seen = set()
    for crash in every_point(whole, root, undelete):
        with opened(root) as memory:
            assert memory.lifecycle.check() == (), crash
            there = {one.key for one in memory.list(limit=10)[0]} - {OTHER}
            assert there in (set(), {A, B}), crash
            away = [key for key in (A, B) if not (root / key).exists()]
            open_ = [one.name for one in memory.deletions.list()] == [name]
            assert open_ or (there and not away), crash
            seen.add((bool(there), len(away), open_))
            if there:
                memory.learning.validate(A, useful=True)
            if (there, away) == ({A, B}, [B]):  # an index run in between finds the file away
                assert memory.index([root / "docs"]).vanished == [B], crash
            try:
                memory.deletions.undelete(name)
            except NotFoundError:  # it was over but for a file, which the next deletion takes away
                assert not open_, crash
                memory.deletions.undelete(memory.deletions.delete(OTHER).name)
            assert memory.get(A).confidence == pytest.approx(CHANGED if there else 0.5), crash
            require_as_before(memory, root, wanted, crash)
    assert seen == {(False, 2, True), (True, 2, True), (True, 1, True), (True, 0, False)}
