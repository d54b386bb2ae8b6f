"""A restore that crashes anywhere leaves the store as it was, or as it was to be, and the next one works."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from crashing import every_point

from tests.attacks.fuzz.living import opened
from tests.server.doors import call
from tests.server.test_checkpoints import answers, ruined, state


@pytest.mark.requirement("M14", "M14.killed")
@pytest.mark.usefixtures("exhaustive")
@pytest.mark.parametrize("replace", [False, True])
def test_wherever_it_crashes_the_store_is_as_before_or_restored(workspace: Path, tmp_path: Path, replace: bool) -> None:
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    ruined(workspace)
    root = tmp_path / "root"

    def restore() -> None:
        with opened(root) as memory:
            memory.checkpoints.restore("first", replace=replace, keep_before=False)

    before, answered = state(workspace), answers(workspace)
    shutil.copytree(workspace, root)
    restore()
    restored, to_answer = state(root), answers(root)
    assert before["memories"] != restored["memories"]
    found = []
    for crash in every_point(workspace, root, restore):
        left = state(root)
        assert left in (before, restored), crash
        if left not in found:
            found.append(left)
            assert answers(root) == (answered if left == before else to_answer), crash
            assert call(root, ["doctor"]).status == 0, crash
            restore()
            assert answers(root) == to_answer, crash
        else:
            with opened(root) as memory:
                assert memory.lifecycle.check() == (), crash
                memory.checkpoints.restore("first", replace=replace, keep_before=False)
        assert state(root) == restored, crash
        files = [file.suffix for file in (root / "memory.db.checkpoints").iterdir() if file.name != ".lock"]
        assert sorted(files) == [".db", ".json"], crash
    assert found == [before, restored]
