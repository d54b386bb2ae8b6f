"""An index run that is killed at any moment leaves a healthy store, and the next run finishes the work."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from storing.by_hand import list_edges

from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.indexing.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader

KILLS = 30
DOCUMENTS = 200
PROJECT = Path(__file__).parents[3]
PROGRAM = """
import sys
from pathlib import Path
from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.indexing.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database
embedder = StaticEmbedder()
embedder.embed_query("loaded before the clock starts")
print("ready", flush=True)
sys.stdin.readline()
with Database.open(Path(sys.argv[1])) as database:
    Indexer(database, embedder, Analyser(), Path(sys.argv[2])).index([Path()], now=100.0)
print("done", flush=True)
"""


def contents(database: Database) -> list[object]:
    """All that can be seen of a store, without ids, which depend on what was cut short."""
    connection = database.reader()
    memories, _ = reader.list_memories(connection, sort="key", limit=10_000)
    keys = {memory.id: memory.key for memory in memories}
    edges = sorted((keys[e.source_id], keys[e.target_id], e.relation) for e in list_edges(connection))
    passages = [[(p.text, p.heading) for p in reader.passages_of(connection, memory.id)] for memory in memories]
    return [[(m.key, m.title, m.content_hash, m.embedding_status, m.chunk_count) for m in memories], passages, edges]


@pytest.mark.requirement("I8")
@pytest.mark.usefixtures("processes")
def test_a_killed_run_is_finished_by_the_next(root: Path, tmp_path: Path, embedder: StaticEmbedder) -> None:
    chance = random.Random(20261121)
    for number in range(DOCUMENTS):
        words = " ".join(chance.choices(["rank", "fusion", "memory", "store", "graph", "decision"], k=40))
        links = f"---\ncausalLinks: {{supersedes: [n{number - 1:03}.md]}}\n---\n" if number else ""
        (root / f"n{number:03}.md").write_text(f"{links}# Note {number}\n\n{words}\n")
    with Database.open(tmp_path / "whole.db") as whole:
        Indexer(whole, embedder, Analyser(), root).index([root], now=100.0)
        expected = contents(whole)

    path, interrupted = tmp_path / "killed.db", 0
    while interrupted < KILLS:
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path), str(root)],
            cwd=PROJECT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdout.readline()
            process.stdin.write("go\n")
            process.stdin.flush()
            try:
                process.wait(timeout=chance.uniform(0.0, 0.4))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                interrupted += 1
        if path.exists() and path.stat().st_size:
            with Database.open(path) as database:
                assert database.check() == []
                stored = reader.statistics(database.reader()).memories
            if stored == DOCUMENTS:
                path.unlink()

    with Database.open(path) as database:
        report = Indexer(database, embedder, Analyser(), root).index([root], now=200.0)
        assert len(report.created) + len(report.unchanged) == DOCUMENTS
        assert contents(database) == expected
        assert database.check() == []
