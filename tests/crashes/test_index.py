"""A first index run that crashes anywhere leaves a healthy store, and the next run finishes the work."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from crashing import every_point
from storing.by_hand import list_edges

from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader
from tests.attacks.fuzz.shared import model

TEXTS = {
    "a.md": "# A\n\nRanks are fused.\n",
    "b.md": "---\ncausalLinks: {supersedes: [a.md]}\n---\n# B\n\nScores are not compared.\n",
    "c.md": "---\ncausalLinks: {supports: [b.md]}\n---\n# C\n\n## One\n\nThe graph.\n\n## Two\n\nThe store.\n",
}


def contents(database: Database) -> list[list[Any]]:
    """All that can be seen of a store, without ids, which depend on what was cut short."""
    connection = database.reader()
    memories, _ = reader.list_memories(connection, sort="key", limit=100)
    keys = {memory.id: memory.key for memory in memories}
    edges = sorted((keys[e.source_id], keys[e.target_id], e.relation) for e in list_edges(connection))
    passages = [[(p.text, p.heading) for p in reader.passages_of(connection, memory.id)] for memory in memories]
    return [[(m.key, m.title, m.content_hash, m.embedding_status, m.chunk_count) for m in memories], passages, edges]


@pytest.mark.requirement("I8")
@pytest.mark.usefixtures("lengthy")
def test_wherever_it_crashes_documents_are_whole_and_the_next_run_finishes(tmp_path: Path) -> None:
    origin, root = tmp_path / "origin", tmp_path / "root"
    (origin / "docs").mkdir(parents=True)
    for name, text in TEXTS.items():
        (origin / "docs" / name).write_text(text)

    def index() -> list[list[Any]]:
        with Database.open(root / "memory.db") as database:
            Indexer(database, model(), Analyser(), root).index([root], now=100.0)
            return contents(database)

    shutil.copytree(origin, root)
    expected = index()
    files = sorted(file.relative_to(root) for file in root.rglob("*"))
    whole = list(zip(*expected[:2], strict=True))
    for crash in every_point(origin, root, index):
        with Database.open(root / "memory.db") as database:
            assert database.check() == [], crash
            assert [each for each in zip(*contents(database)[:2], strict=True) if each not in whole] == [], crash
            report = Indexer(database, model(), Analyser(), root).index([root], now=200.0)
            assert len(report.created) + len(report.unchanged) == len(TEXTS), crash
            assert contents(database) == expected, crash
            assert database.check() == [], crash
        assert sorted(file.relative_to(root) for file in root.rglob("*")) == files, crash
