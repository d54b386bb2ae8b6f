"""Lives of stores in which real processes are killed: sixty of them, at the same points each time."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from tally import Tally

from speckit_memory.errors import SpeckitError
from tests.attacks.fuzz import lives
from tests.attacks.fuzz.dying import killed
from tests.attacks.fuzz.living import AFTER_A_DEATH, KILLED, Life, opened

POINTS = (2, 12, 30, 55, 90, 140)
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
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("event", [event.__name__ for event in KILLED])
@pytest.mark.usefixtures("processes")
def test_whoever_is_killed_leaves_what_another_goes_on_with(event: str, tmp_path: Path, tally: Tally) -> None:
    died = 0
    for point in POINTS:
        life = Life(tmp_path / "life")
        with patch.object(time, "time", lambda life=life: life.now):
            for name, first, second in BEFORE.get(event, []):
                lives.NAMED[name](life, first, second)
            life.memory.close()

            def work(life: Life = life) -> None:
                life.memory = opened(life.root)
                lives.NAMED[event](life, 0, 0 if event == "restore" else 1)

            died += killed(life.root, work, point)
            life.now += AFTER_A_DEATH
            life.memory = opened(life.root)
            try:
                assert (wrong := life.memory.check()) == (), wrong
                try:
                    lives.NAMED[event](life, 0, 0)
                except SpeckitError:
                    tally.survived()
                lives.held(life)
            finally:
                life.memory.close()
        shutil.rmtree(life.root)
        tally.tried()
    assert died >= 2, "the points are beyond what it does"
