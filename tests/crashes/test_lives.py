"""Lives of stores that crash at every change of a file, in each of the events that a process is killed in."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from crashing import every_point

from speckit_memory.errors import SpeckitError
from tests.attacks.fuzz import lives
from tests.attacks.fuzz.living import AFTER_A_DEATH, KILLED, Life, opened

BEFORE = {
    "undelete": [("delete", 0, 1)],
    "roll_back": [("model", 1, 0)],
    "restore": [("checkpoint", 0, 1), ("write", 0, 1), ("remove", 1, 0), ("index", 0, 0)],
    "index": [("write", 0, 1), ("write", 4, 2), ("rename", 1, 9), ("remove", 2, 0)],
    "save": [("write", 0, 1)],
    "take_back": [("promote", 0, 0), ("validate", 0, 1)],
    "maintain": [("validate", 0, 1), ("wait", 9, 0)],
}


@pytest.mark.requirement("I8", "M14.killed")
@pytest.mark.usefixtures("exhaustive")
@pytest.mark.parametrize("event", [event.__name__ for event in KILLED])
def test_wherever_it_crashes_another_process_goes_on_with_what_is_left(event: str, tmp_path: Path) -> None:
    life, crashes = Life(tmp_path / "origin"), 0
    with patch.object(time, "time", lambda: life.now):
        for name, first, second in BEFORE.get(event, []):
            lives.NAMED[name](life, first, second)
        life.memory.close()
        began, life.root, life.docs = life.now, tmp_path / "life", tmp_path / "life" / "docs"

        def work() -> None:
            life.now = began
            with opened(life.root) as life.memory:
                lives.NAMED[event](life, 0, 0 if event == "restore" else 1)

        for crash in every_point(tmp_path / "origin", life.root, work):
            life.now += AFTER_A_DEATH
            life.memory = opened(life.root)
            try:
                assert (wrong := life.memory.lifecycle.check()) == (), (crash, wrong)
                with suppress(SpeckitError):
                    lives.NAMED[event](life, 0, 0)
                lives.held(life)
            finally:
                life.memory.close()
            crashes += 1
    assert crashes > 1
