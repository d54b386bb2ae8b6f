"""A change of models that is killed at any point: the old vectors serve, spaces never mix, and the next run goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import embedding_service
import pytest
from embedding_service import Service
from killing import killed, points, spread

from speckit_memory.engine import Memory
from tests.server.doors import call, environment

KILLS = 12
NOTES = 130
"""More than the vectors of two batches."""
NAME = "openai:tiny"
ASKED = ("number 7", "the subject of it")


@pytest.fixture
def service() -> Iterator[Service]:
    with embedding_service.running() as running:
        yield running


def answers(memory: Memory) -> list[list[tuple[str, float]]]:
    found = [memory.search(query, limit=20, deadline_ms=None).results for query in ASKED]
    return [[(row.key, row.score) for row in rows] for rows in found]


@pytest.mark.requirement("I6.beside", "I6.back")
def test_whenever_it_is_killed_one_space_serves_and_the_change_can_go_on_and_back(
    tmp_path: Path, service: Service
) -> None:
    whole, root = tmp_path / "whole", tmp_path / "root"
    (whole / "docs").mkdir(parents=True)
    for number in range(NOTES):
        (whole / "docs" / f"note{number}.md").write_text(f"# Note {number}\n\nThe subject of it is number {number}.\n")
    assert call(whole, ["index", "docs"]).status == 0
    named = {"SPECKIT_EMBEDDER": NAME, "SPECKIT_EMBEDDER_URL": service.url}
    env, use = environment(root, **named), ["model", "use", NAME, "--no-compare"]

    def opened(**environ: str) -> Memory:
        return Memory.open(root / "memory.db", root=root, environ=environ, create=False, shadows=False)

    def begun() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(whole, root)
        return root

    begun()
    with opened() as memory:
        old, bundled = answers(memory), memory.models().serving
    passed = points(root, use, env)
    with opened(**named) as memory:
        new, tiny = answers(memory), memory.models().serving
    assert (new != old, tiny != bundled) == (True, True)
    served, gone_on = [], 0
    for at in spread(passed, KILLS):
        assert killed(begun(), use, env, at)
        with opened(**named) as memory:
            assert memory.check() == ()
            served.append(memory.models().serving)
            assert answers(memory) == (old if served[-1] == bundled else new)
            made = memory.build_model(NAME)
            gone_on += made.cached > 0
            assert made.embedded + made.cached == made.total == NOTES
            assert memory.use_model(NAME).pending == 0
            assert answers(memory) == new
            assert memory.roll_back_model().after == bundled
            assert memory.check() == ()
        with opened() as memory:
            assert answers(memory) == old
    assert (served[0], served[-1]) == (bundled, tiny)
    assert 0 < gone_on < len(served)
    assert call(root, ["doctor"]).status == 0
