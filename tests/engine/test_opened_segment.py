"""Whole searches on a segment and the changes since answer as searches on the tables do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine.api.memory import Memory
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.segment_files.segment_store import folder_of
from speckit_memory.memory.store.segment_writing import building, writing

NOW = 1.8e9
PRESETS = ("default", "catalogue", "quality")
DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
QUESTIONS = (
    "memory mapping sqlite",
    "why do we not use mmap",
    "how are ranked lists merged into one ranking and what follows from it",
    "promtions of flags",
    '"late interaction" -reranker',
    "0003-no-mmap.md",
)


def answers(root: Path, preset: str) -> list[Any]:
    with Memory.open(root / "m.db", preset, root=root, environ={}, create=False, shadows=False) as memory:
        found = [memory.search(text, now=NOW, deadline_ms=None, limit=20) for text in QUESTIONS]
        return [
            (
                [result.key for result in answer.results],
                answer.outcome.pool.candidates.ids.tolist(),
                repr(answer.outcome.pool.score.tolist()),
            )
            for answer in found
        ]


@pytest.mark.requirement("C3")
def test_a_segment_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    shutil.copytree(DECISIONS, root / "docs")
    store = root / "m.db"
    with Memory.open(store, root=root, environ={}, shadows=False) as memory:
        memory.index([root / "docs"])
    with Database.open(store, create=False) as database:
        assert writing.write(database, building.build, only_if_due=False) is not None
    folder = folder_of(store)
    aside = folder.with_name("aside")
    for state in ("as it was", "changed"):
        if state == "changed":
            files = sorted((root / "docs").glob("*.md"))
            files[0].unlink()
            files[1].write_text("# Another text\n\nLate interaction and memory mapping, why not both?\n")
            (root / "docs" / "new.md").write_text("# Ranking\n\nHow ranked lists are merged.\n")
            with Memory.open(store, root=root, environ={}, shadows=False) as memory:
                memory.index([root / "docs"])
        folder.rename(aside)
        expected = {preset: answers(root, preset) for preset in PRESETS}
        aside.rename(folder)
        with monkeypatch.context() as patched:
            # What is read from a segment is not looked up in the file.
            patched.delattr(Snapshot, "of_file")
            for preset, answer in expected.items():
                assert answers(root, preset) == answer, (state, preset)
