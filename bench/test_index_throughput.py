"""How fast documents of 5 kB become memories, end to end: files, passages, words, vectors, rows (aim: 150 a second)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.indexing.chunks import split
from speckit_memory.memory.indexing.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database

DOCUMENTS = 300
SIZE = 5000
VOCABULARY = [
    f"{stem}{ending}"
    for stem in ("search", "rank", "memor", "decid", "graph", "stor")
    for ending in ("", "ing", "ed", "er", "ation", "able", "ness", "ful", "s", "Id", "_key", "-01")
]


def document(chance: random.Random) -> str:
    """Sections of paragraphs, with a list and a code block each, as notes have them."""
    parts = [f"# {' '.join(chance.choices(VOCABULARY, k=5))}\n"]
    while sum(map(len, parts)) < SIZE:
        paragraph = ". ".join(" ".join(chance.choices(VOCABULARY, k=12)) for _ in range(5))
        code = "\n".join(f"{chance.choice(VOCABULARY)} = {number}" for number in range(4))
        parts.append(f"\n## {chance.choice(VOCABULARY)}\n\n{paragraph}.\n\n- one\n- two\n\n```python\n{code}\n```\n")
    return "".join(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    chance = random.Random(7)
    for number in range(DOCUMENTS):
        (root / f"note-{number:03}.md").write_text(document(chance))
    return root


def test_index_a_folder(benchmark: Any, folder: Path, tmp_path: Path) -> None:
    stores = iter(range(100))

    def run() -> None:
        with Database.open(tmp_path / f"{next(stores)}.db") as database:
            report = Indexer(database, StaticEmbedder(), Analyser(), folder).index([folder], now=1.0)
        assert len(report.created) == DOCUMENTS

    benchmark.pedantic(run, rounds=3)
    benchmark.extra_info["documents_per_second"] = DOCUMENTS / benchmark.stats.stats.min


def test_index_an_unchanged_folder(benchmark: Any, folder: Path, tmp_path: Path) -> None:
    with Database.open(tmp_path / "memory.db") as database:
        indexer = Indexer(database, StaticEmbedder(), Analyser(), folder)
        indexer.index([folder], now=1.0)
        benchmark(indexer.index, [folder], now=2.0)


def test_analyse(benchmark: Any, folder: Path) -> None:
    analyser = Analyser()
    texts = [path.read_text() for path in folder.iterdir()]
    benchmark(lambda: [analyser.tokens(text) for text in texts])
    benchmark.extra_info["megabytes_per_second"] = sum(map(len, texts)) / 1e6 / benchmark.stats.stats.min


def test_cut_into_passages(benchmark: Any, folder: Path) -> None:
    texts = [path.read_text() for path in folder.iterdir()]
    benchmark(lambda: [list(split(text)) for text in texts])
    benchmark.extra_info["megabytes_per_second"] = sum(map(len, texts)) / 1e6 / benchmark.stats.stats.min


def test_embed_a_query(benchmark: Any) -> None:
    benchmark(StaticEmbedder().embed_query, "why did we choose rank fusion over weighted sums?")
