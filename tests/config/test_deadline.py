"""Who decides how long a search may take: the environment before the workspace's file before what is shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.workspace.deadline import deadline_in_force
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError


def deadline(root: Path, **environ: str) -> float | None:
    return deadline_in_force(settings(root=root, environ=environ))


@pytest.mark.requirement("P9")
def test_the_environment_goes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    assert deadline(tmp_path) == 2000
    (tmp_path / ".speckit").mkdir()
    (tmp_path / ".speckit" / "config.yaml").write_text("deadline_ms: 750\n", encoding="utf-8")
    assert deadline(tmp_path) == 750
    assert deadline(tmp_path, SPECKIT_DEADLINE_MS="") == 750
    assert deadline(tmp_path, SPECKIT_DEADLINE_MS="1.5e3") == 1500
    assert deadline(tmp_path, SPECKIT_DEADLINE_MS="0") is None


@pytest.mark.parametrize("written", ["soon", "-1", "nan", "inf", "2s"])
def test_what_is_no_length_of_time_is_refused_by_name(tmp_path: Path, written: str) -> None:
    with pytest.raises(SpeckitError, match="SPECKIT_DEADLINE_MS is") as caught:
        deadline(tmp_path, SPECKIT_DEADLINE_MS=written)

    [problem] = caught.value.problems
    assert problem.code == "E030"
    assert (
        problem.message == f"SPECKIT_DEADLINE_MS is '{written}'; accepted: a number of milliseconds, 0 for no deadline"
    )
