"""How fast documents become memories, end to end: files, passages, words, vectors, rows; what that takes of memory, and
what searches feel of it. See docs/decisions/0059-where-the-time-of-a-document-goes.md."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.synthetic import Corpus
from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.parsing.markdown.chunks import split
from speckit_memory.memory.store.file.connection import Database

DOCUMENTS = 300
SIZE = 5000
MANY, CHANGED = 5000, 1500
WORDS = 300
MOST_MEGABYTES = 450
"""Of the command and its helpers together, where they are most, whatever they share counted for each."""
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


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    """Many files of 300 words, and the distribution that their words come from."""
    root, corpus = tmp_path_factory.mktemp("many"), Corpus()
    for number in range(MANY):
        folder = root / "docs" / f"{number % 100:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.md").write_text(f"# {' '.join(corpus.words(4))}\n\n{' '.join(corpus.words(WORDS))}\n")
    return root, corpus


def indexing(root: Path, beside: Callable[[int], None]) -> float:
    """Seconds of one `index` of the folder at the command line; `beside` is called with its process again and again."""
    command = [sys.executable, "-P", "-c", "from speckit_memory.server.entry import main; main()", "index", "docs"]
    begun = time.perf_counter()
    with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, env=os.environ | {"SPECKIT_DB": ""}) as process:
        while process.poll() is None:
            beside(process.pid)
    assert process.returncode == 0
    return time.perf_counter() - begun


def resident(process: int) -> int:
    """Bytes of a process and of those that it started."""
    total = 0
    with suppress(OSError, ValueError):  # it may end meanwhile
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        total = pages * os.sysconf("SC_PAGE_SIZE")
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        total += sum(resident(int(child)) for child in children)
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_memory_of_an_index_run_and_its_helpers(workspace: tuple[Path, Corpus], benchmark: Any) -> None:
    root, _ = workspace
    peak = 0

    def look(process: int) -> None:
        nonlocal peak
        peak = max(peak, resident(process))
        time.sleep(0.02)

    seconds = benchmark.pedantic(indexing, args=(root, look), rounds=1)
    benchmark.extra_info |= {"peak_megabytes": peak / 1e6, "documents_per_second": MANY / seconds}
    assert peak < MOST_MEGABYTES * 1e6


def test_searches_beside_an_index_run(workspace: tuple[Path, Corpus], benchmark: Any) -> None:
    """How many times as long slow searches (p95) take in another process while files are indexed (aim: 2, which is not
    reached); told and not held."""
    root, corpus = workspace
    (root / ".speckit").mkdir(exist_ok=True)
    taken: list[float] = []
    with Memory.open(root / ".speckit" / "memory.db", root=root, environ={}) as memory:
        memory.index_documents(corpus.sources() if not memory.documents.sources() else ())

        def search(_process: int = 0) -> None:
            (query,) = corpus.queries("moderate", 1)
            begun = time.perf_counter()
            memory.search(query)
            taken.append(time.perf_counter() - begun)
            time.sleep(0.05)

        for _ in range(100):
            search()
        idle = float(np.percentile(taken[20:], 95))
        for file in sorted((root / "docs").rglob("*.md"))[:CHANGED]:
            file.write_text(f"{file.read_text()}\n{' '.join(corpus.words(20))}\n")
        taken.clear()
        benchmark.pedantic(indexing, args=(root, search), rounds=1)
    ratio = float(np.percentile(taken, 95)) / idle
    benchmark.extra_info |= {"searches": len(taken), "idle_p95_ms": idle * 1000, "ratio_of_p95": ratio}
