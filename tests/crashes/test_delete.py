"""An undoing that is killed at any point is finished by the next one, and writes over nothing that was done since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from killing import killed, points, spread

from speckit_memory.engine import Memory
from tests.server.doors import call, environment
from tests.server.test_checkpoints import here

A, B, OTHER = "docs/del/a.md", "docs/del/b.md", "docs/other.md"
TEXTS = {
    A: "# A\n\nKangaroos have pouches, [see](b.md).\n",
    B: "# B\n\nWombats dig burrows, unlike kangaroos.\n",
    OTHER: "---\ncausalLinks: {supports: [del/a.md]}\n---\n# Other\n\nEmus run past.\n",
}
KILLS = 9
CHANGED = 0.6
"""The confidence of a memory that was found useful once."""


def opened(root: Path) -> Memory:
    return Memory.open(root / "memory.db", root=root, environ={}, create=False, shadows=False)


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A workspace of which a folder was deleted, and the name of that deletion."""
    root = tmp_path_factory.mktemp("deleted")
    for key, text in TEXTS.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text(text)
    assert call(root, ["index", "docs"]).status == 0
    assert call(root, ["links", "add", A, "caused", B]).status == 0
    ran = call(root, ["delete", "--folder", "docs/del", "--confirm", "--json"])
    assert ran.json["count"] == 2, ran.err
    return root, ran.json["undo"]


def copied(deleted: Path, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(deleted, root)
    return root


def links(memory: Memory) -> set[tuple[str, str, str]]:
    return {
        (link.source, link.relation, link.target)
        for key in (A, B)
        for group in memory.lineage(key).groups.values()
        for link in group
    }


@pytest.mark.requirement("T9.undone")
def test_whenever_it_was_killed_the_next_one_finishes_it_and_later_changes_stay(
    deleted: tuple[Path, str], tmp_path: Path
) -> None:
    whole, name = deleted
    root, env = tmp_path / "root", environment(tmp_path / "root")
    passed = points(copied(whole, root), ["undelete", name], env)
    with opened(root) as memory:
        wanted = links(memory)
        assert (A, "caused", B) in wanted
    back = 0
    for at in spread(passed, KILLS):
        copied(whole, root)
        assert killed(root, ["undelete", name], env, at)
        with opened(root) as memory:
            assert memory.check() == ()
            there = {one.key for one in memory.list(limit=10)[0]} - {OTHER}
            assert there in (set(), {A, B})
            if there:
                back += 1
                memory.validate(A, useful=True)
            away = [key for key in (A, B) if not (root / key).exists()]
            assert [one.name for one in memory.deletions()] == ([name] if away or not there else [])
        ran = here(root, ["undelete", name, "--json"])
        assert ran.status == 0 or (at == passed and ran.json["error"]["code"] == "E106"), ran.out
        with opened(root) as memory:
            assert memory.get(A).confidence == pytest.approx(CHANGED if there else 0.5)
            assert links(memory) == wanted
            assert memory.deletions() == []
            report = memory.index([root / "docs"])
            assert (report.created, report.updated, report.deleted) == ([], [], [])
            assert memory.check() == ()
        assert {key: (root / key).read_text() for key in TEXTS} == TEXTS
    assert 0 < back < KILLS


@pytest.mark.requirement("T9.undone")
def test_what_an_index_run_took_in_between_comes_back_and_the_rest_stays(
    deleted: tuple[Path, str], tmp_path: Path
) -> None:
    """Killed when one of two files was back: an index run deletes the memory of the other."""
    whole, name = deleted
    root, env = tmp_path / "root", environment(tmp_path / "root")
    passed = points(copied(whole, root), ["undelete", name], env)
    for at in range(passed - 1, passed - 20, -1):
        copied(whole, root)
        assert killed(root, ["undelete", name], env, at)
        if ((root / A).exists(), (root / B).exists()) == (True, False):
            break
    with opened(root) as memory:
        assert memory.index([root / "docs"]).deleted == [B]
        memory.validate(A, useful=True)
        assert [one.name for one in memory.deletions()] == [name]
    assert call(root, ["undelete", name]).status == 0
    with opened(root) as memory:
        assert memory.get(A).confidence == pytest.approx(CHANGED)
        assert (A, "caused", B) in links(memory)
        assert memory.deletions() == []
        assert memory.check() == ()
    assert call(root, ["doctor"]).status == 0
