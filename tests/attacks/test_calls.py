"""All tools of one server, called with what attackers write: a short run of `scripts/soak --calls`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tally import Tally

from tests.attacks.fuzz import calls
from tests.server.doors import environment
from tests.server.test_tool_parameters import CASES

pytestmark = pytest.mark.usefixtures("processes")


def test_hostile_texts_in_every_tool_leave_the_workspace_alone(tally: Tally) -> None:
    figures = calls.tried(600, seed=3)

    assert figures.broken == []
    assert set(figures.tools) == set(CASES)
    assert figures.calls == 600
    assert figures.answered > 100 < sum(figures.codes.values())
    tally.tried(figures.calls)


def test_what_lies_outside_is_told_of_by_whoever_opens_it(tmp_path: Path, tally: Tally) -> None:
    root, watch = tmp_path / "workspace", tmp_path / "watch"
    for made in (root, watch):
        made.mkdir()
    log = calls.watched(watch, tmp_path, root)
    inside, outside = root / "a.md", tmp_path / "outside.md"
    opens = f"open({str(inside)!r}, 'w'); open({str(root / '../outside.md')!r}, 'w'); open('/etc/passwd')"
    subprocess.run([sys.executable, "-c", opens], env=environment(root, PYTHONPATH=str(watch)), check=True, cwd=root)

    watching, *met = log.read_text(encoding="utf-8").splitlines()

    assert outside.exists()
    assert watching == "watching"
    assert ["outside.md" in met[0], "/etc/passwd" in met[1], len(met)] == [True, True, 2]
    tally.tried(2)
