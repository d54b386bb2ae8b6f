"""A restore that is killed at any point leaves the store as it was, or as it was to be, and the next one works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from killing import killed, points, spread

from tests.server.doors import call, environment
from tests.server.test_checkpoints import answers, here, ruined, state

KILLS = 11
"""Of each way of restoring."""
WAYS = {"merge": [], "replace": ["--replace", "--no-backup"]}


@pytest.mark.requirement("M14", "M14.killed")
@pytest.mark.parametrize("way", WAYS)
def test_whenever_it_is_killed_the_store_is_as_before_or_as_restored(workspace: Path, tmp_path: Path, way: str) -> None:
    assert here(workspace, ["checkpoint", "create", "first"]).status == 0
    ruined(workspace)
    root, restore = tmp_path / "root", ["checkpoint", "restore", "first", *WAYS[way]]
    env = environment(root)

    def begun() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(workspace, root)
        return root

    before, answered = state(begun()), answers(root)
    passed = points(root, restore, env)
    restored, to_answer = state(root), answers(root)
    assert before["memories"] != restored["memories"]
    found = []
    for at in spread(passed, KILLS):
        assert killed(begun(), restore, env, at)
        found.append(state(root))
        assert found[-1] in (before, restored)
        assert answers(root) == (answered if found[-1] == before else to_answer)
        assert here(root, ["doctor"]).status == 0
        assert here(root, restore).status == 0
        assert answers(root) == to_answer
    assert len(found) >= KILLS - 1
    assert (found[0], found[-1]) == (before, restored)
    assert call(root, ["doctor"]).status == 0
    names = [one["name"] for one in call(root, ["checkpoint", "list", "--json"]).json["checkpoints"]]
    assert names == ["first"]
    left = sorted(file.suffix for file in (root / "memory.db.checkpoints").iterdir() if file.name != ".lock")
    assert left == [".db", ".json"]
