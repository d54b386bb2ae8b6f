"""Without a segment, a process that searches once asks sqlite-vec for the nearest vectors, and builds nothing. With
one, it does neither."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.server.workspace.workspace import Workspace

WORDS = ("gateway", "retries", "payment", "cache", "index", "vector", "ranking", "storage", "deadline", "fusion")
QUESTION = "why does the payment gateway retry?"
ONCE = """
import sys
from speckit_memory.memory.store.read_model.vectors import sqlite_vectors
from speckit_memory.memory.store.segment_writing import building
from speckit_memory.server.entry import main

def told(owner, name):
    original = getattr(owner, name)
    def work(*arguments):
        print(name, file=sys.stderr, flush=True)
        return original(*arguments)
    setattr(owner, name, work)

told(sqlite_vectors, "nearest")
told(sqlite_vectors, "vectors")
told(building, "build_in_memory")
sys.exit(main())
"""
"""The command, telling what its vectors are asked of."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two hundred memories, every fourth of several passages; their segment lies elsewhere."""

    def text(number: int) -> str:
        words = [WORDS[(number * step) % len(WORDS)] for step in (1, 3, 5, 7)]
        return "\n\n".join(f"## {word}\n\n{' '.join(words)} {number} {word}. " * 12 for word in words[: 1 + number % 4])

    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as memory:
        memory.index_documents(
            Source(key=f"notes/{number}.md", text=text(number), title=f"Note {number}") for number in range(200)
        )
    (tmp_path / "m.db.segments").rename(tmp_path / "aside")
    return tmp_path


@pytest.mark.requirement("C1.cosine")
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.usefixtures("processes")
def test_one_search_of_the_command_line_builds_nothing_and_answers_as_a_process_with_a_segment(
    root: Path, opened: bool
) -> None:
    if opened:
        (root / "aside").rename(root / "m.db.segments")
    shutil.copy(root / "m.db", root / "unasked.db")  # what is served counts as used, which rows tell
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPECKIT_")}
    environment |= {"SPECKIT_ROOT": str(root), "SPECKIT_DB": str(root / "m.db")}
    ran = subprocess.run(
        [sys.executable, "-c", ONCE, "search", QUESTION, "--json"],
        env=environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip

    assert ran.stderr.splitlines() == ([] if opened else ["nearest", "vectors"])
    with Memory.open(root / "unasked.db", root=root, environ={}) as memory:
        memory.models.load_vectors()
        warm = json.loads(json.dumps(memory.search(QUESTION).as_json()))
    cold = json.loads(ran.stdout)
    assert len(cold["results"]) == 10
    assert cold["results"] == warm["results"]


def test_the_warm_up_of_a_server_builds_what_searches_read(root: Path) -> None:
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        Workspace(lambda create: memory, memory.session.settings).warm_up()
        assert "words_from" not in memory.search(QUESTION).notes.facts
