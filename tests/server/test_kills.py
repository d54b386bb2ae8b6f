"""Operations of the installed script that are killed: the store is healthy, and the next run finishes the work."""

from __future__ import annotations

from pathlib import Path

import pytest
from kills import OPERATIONS, try_kills

KILLS = 3
"""Of each operation; tests/crashes visits every point of them, and `scripts/soak --kills 50` kills more."""


@pytest.mark.requirement("I8", "M14.killed", "I6.beside")
@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_operation_is_finished_by_the_next_run(unasked: Path, tmp_path: Path, operation: str) -> None:
    assert try_kills(operation, unasked, tmp_path, KILLS) == KILLS
