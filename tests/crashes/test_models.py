"""A change of models that crashes anywhere: the old vectors serve, spaces never mix, and the next run goes on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from crashing import every_point

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import spaces
from tests.attacks.fuzz.living import opened
from tests.attacks.fuzz.second_model import NAME

NOTES = 5
BATCH = 2
LATER = time.time() + 3600.0
"""When whoever began to make vectors is known to be gone."""
ASKED = ("number 3", "the subject of it")


def answers(memory: Memory) -> list[list[tuple[str, float]]]:
    found = [memory.search(query, limit=20, deadline_ms=None).results for query in ASKED]
    return [[(row.key, row.score) for row in rows] for rows in found]


@pytest.mark.requirement("I6.beside", "I6.back")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_it_crashes_one_space_serves_and_the_change_can_go_on_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaces, "GROUP", BATCH)
    whole, root = tmp_path / "whole", tmp_path / "root"
    (whole / "docs").mkdir(parents=True)
    for number in range(NOTES):
        (whole / "docs" / f"note{number}.md").write_text(f"# Note {number}\n\nThe subject of it is number {number}.\n")
    with opened(whole) as memory:
        memory.index([whole / "docs"])
        old, bundled = answers(memory), memory.models.list().serving
    shutil.copytree(whole, root)

    def use() -> None:
        with opened(root) as memory:
            memory.models.use(NAME)

    use()
    with opened(root) as memory:
        new, tiny = answers(memory), memory.models.list().serving
    assert (new != old, tiny != bundled) == (True, True)
    seen = []
    for crash in every_point(whole, root, use):
        with opened(root) as memory, patch.object(time, "time", lambda: LATER):
            assert memory.lifecycle.check() == (), crash
            serving = memory.models.list().serving
            assert answers(memory) == (old if serving == bundled else new), crash
            made = memory.models.build(NAME)
            assert made.embedded + made.cached == made.total == NOTES, crash
            if (serving, made.cached) in seen:
                continue
            seen.append((serving, made.cached))
            assert memory.models.use(NAME).pending == 0, crash
            assert answers(memory) == new, crash
            assert memory.models.roll_back().after == bundled, crash
            assert answers(memory) == old, crash
            assert memory.lifecycle.check() == (), crash
    assert seen == [(bundled, 0), (bundled, 2), (bundled, 4), (bundled, 5), (tiny, 5)]
