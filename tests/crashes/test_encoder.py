"""Vectors for the second look whose making crashes anywhere: none is torn, and the next run goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from crashing import every_point

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import encoder_vectors
from speckit_memory.memory.models import embedders
from tests.attacks.fuzz.living import opened
from tests.attacks.fuzz.second_model import second_model

NOTES = 5
GROUP = 2
ASKED = ("number 3", "the subject of it")


def answers(memory: Memory) -> list[list[tuple[str, float]]]:
    found = [memory.search(query, limit=20, deadline_ms=None).results for query in ASKED]
    return [[(row.key, row.score) for row in rows] for rows in found]


@pytest.mark.requirement("R1.encoder")
@pytest.mark.usefixtures("exhaustive")
def test_wherever_it_crashes_answers_stand_and_what_was_made_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = second_model()
    monkeypatch.setattr(embedders, "encoder_of", lambda _: encoder)
    monkeypatch.setattr(encoder_vectors, "GROUP", GROUP)
    whole, root = tmp_path / "whole", tmp_path / "root"
    (whole / "docs").mkdir(parents=True)
    for number in range(NOTES):
        (whole / "docs" / f"note{number}.md").write_text(f"# Note {number}\n\nThe subject of it is number {number}.\n")
    with opened(whole) as memory:
        memory.index([whole / "docs"])
        without = answers(memory)
    shutil.copytree(whole, root)

    def make() -> None:
        with opened(root) as memory:
            memory.models.encode()

    make()
    with opened(root) as memory:
        complete = answers(memory)
    assert complete != without
    left = set()
    for crash in every_point(whole, root, make):
        with opened(root) as memory:
            assert memory.lifecycle.check() == (), crash
            left.add(memory.models.encode())
            assert answers(memory) == complete, crash
    assert left == {5, 3, 1, 0}
