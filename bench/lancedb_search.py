"""Searches by the library, exact and with the extra `ann`, and by LanceDB: `python -m bench.lancedb_search FOLDER`.

FOLDER holds a store of `python -m bench.synthetic`; a copy of it gets inverted lists. LanceDB, which the project does
not depend on (`pip install lancedb`), gets the same passages and vectors, with IVF_HNSW_SQ and a full-text index, and
is asked a hybrid query fused by reciprocal ranks. It has no fields, links, ages, sessions, excerpts or explanations.
Queries are asked in turns of all three. Printed are milliseconds of the clock and of all processors, and which part of
the 50 passages that are nearest is found. Figures stand in docs/decisions/0117-upkeep-memory-and-a-large-store.md.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bench.one_thread import one_thread

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.pipeline.ports import Vectors

DEPTH, SHOWN = 50, 10
BATCH = 10_000
LISTED = {"SPECKIT_VECTOR_INDEX": "0"}
"""Makes a store of any size have inverted lists."""


class LanceSearch:
    """A table of passages with both indexes."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        """Copies the passages of an open memory and indexes them."""
        from speckit_memory.memory.store.reading import loading

        lancedb, pyarrow = importlib.import_module("lancedb"), importlib.import_module("pyarrow")
        self._fused = importlib.import_module("lancedb.rerankers").RRFReranker()
        self._embedder = memory.models.embedder
        with memory.session.database.snapshot_read() as source:
            passages, vectors = loading.load_vectors(source)
            rows = source.execute("SELECT id, memory_id, text FROM chunks ORDER BY id").fetchall()
        texts = {id_: (parent, text) for id_, parent, text in rows}
        shape = pyarrow.list_(pyarrow.float32(), vectors.shape[1])

        def tables() -> Any:
            for at in range(0, len(passages), BATCH):
                ids = passages[at : at + BATCH].tolist()
                yield pyarrow.table(
                    {
                        "id": ids,
                        "memory": [texts[id_][0] for id_ in ids],
                        "text": [texts[id_][1] for id_ in ids],
                        "vector": pyarrow.FixedSizeListArray.from_arrays(
                            vectors[at : at + BATCH].reshape(-1), type=shape
                        ),
                    }
                )

        batches = tables()
        self._table = lancedb.connect(folder).create_table("passages", next(batches))
        for batch in batches:
            self._table.add(batch)
        indexes = importlib.import_module("lancedb.index")
        self._table.create_index("vector", config=indexes.HnswSq(distance_type="cosine"))
        self._table.create_index("text", config=indexes.FTS())
        self._table.optimize()

    def search(self, query: str) -> list[tuple[int, str]]:
        """The memory and text of the best passages, ten memories."""
        asked = self._table.search(query_type="hybrid").vector(self._embedder.embed_query(query)).text(query)
        rows = asked.rerank(self._fused).limit(DEPTH).select(["memory", "text"]).to_arrow()
        best: dict[int, str] = {}
        for memory, text in zip(rows["memory"].to_pylist(), rows["text"].to_pylist(), strict=True):
            best.setdefault(memory, text)
        return list(best.items())[:SHOWN]

    def nearest(self, query: Vectors) -> set[int]:
        """The passages that are nearest."""
        found = self._table.search(query, vector_column_name="vector").distance_type("cosine").limit(DEPTH)
        return set(found.select(["id"]).to_arrow()["id"].to_pylist())


def main() -> None:
    """Prints a row for each complexity and way, then what is found."""
    one_thread()
    os.environ.setdefault("LANCE_LOG", "error")  # else it warns at each query
    parser = argparse.ArgumentParser(prog="python -m bench.lancedb_search", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=100, help="of each complexity (default: %(default)s)")
    chosen = parser.parse_args()
    folder: Path = chosen.folder
    for module, command in (("lancedb", "pip install lancedb"), ("faiss", "pip install 'speckit-memory[ann]'")):
        try:
            importlib.import_module(module)
        except ImportError:
            sys.exit(f"{module} is missing: {command}")
    from speckit_memory.engine import Memory

    with TemporaryDirectory(dir=folder.parent) as scratch:
        copied = Path(shutil.copytree(folder, Path(scratch) / "listed"))
        with (
            Memory.open(folder / "memory.db", "default", root=folder, environ={}, shadows=False) as memory,
            Memory.open(copied / "memory.db", "default", root=copied, environ=LISTED, shadows=False) as listed,
        ):
            listed.lifecycle.write_segment()
            measure(memory, listed, LanceSearch(memory, Path(scratch) / "lance"), chosen.queries)


def measure(memory: Memory, listed: Memory, lance: LanceSearch, queries: int) -> None:
    """Prints the figures."""
    import numpy as np

    from bench.settling import settle
    from bench.steps import COMPLEXITIES
    from bench.synthetic import Corpus

    corpus = Corpus(memory.session.view().attributes.count)
    warming = corpus.queries("complex", 20)
    for one in (memory, listed):
        settle(one, warming)
    for query in warming:
        lance.search(query)
    assert listed.session.opened.read_model.current().vectors.listed is not None
    ways: dict[str, Callable[[str], object]] = {
        "ours": partial(memory.search, deadline_ms=None),
        "ours, ann": partial(listed.search, deadline_ms=None),
        "LanceDB": lance.search,
    }
    print(f"{'ms':10} {'':10} {'p50':>6} {'p95':>6} {'processor p50':>13} {'p95':>6}")
    for complexity in COMPLEXITIES:
        asked = corpus.queries(complexity, queries)
        times = np.array([[_milliseconds(partial(search, query)) for search in ways.values()] for query in asked])
        for name, spent in zip(ways, np.percentile(times, (50, 95), axis=0).transpose(1, 2, 0), strict=True):
            (p50, p95), (cpu50, cpu95) = spent
            print(f"{complexity:10} {name:10} {p50:6.1f} {p95:6.1f} {cpu50:13.1f} {cpu95:6.1f}", flush=True)
    found = np.array([_found(memory, listed, lance, query) for query in corpus.queries("moderate", queries)])
    for name, shares in zip(list(ways)[1:], found.T, strict=True):
        print(f"{name}: {shares.mean():.3f} of the {DEPTH} nearest passages, {shares.min():.2f} at the worst query")


def _found(memory: Memory, listed: Memory, lance: LanceSearch, query: str) -> tuple[float, float]:
    from speckit_memory.pipeline.ports import Filter

    vector = memory.models.embedder.embed_query(query)
    with listed.session.opened.read_model.reading() as snapshot:
        scope = snapshot.attributes.scope(Filter(), 0.0)
        exact = set(snapshot.vectors.nearest_chunks(vector[None], DEPTH)[0][0].tolist())
        ours = set(snapshot.vectors.nearest(vector, DEPTH, scope, "chunk")[0].tolist())
    return len(ours & exact) / DEPTH, len(lance.nearest(vector) & exact) / DEPTH


def _milliseconds(search: Callable[[], object]) -> tuple[float, float]:
    begun, spent = time.perf_counter(), time.process_time()
    search()
    return 1000 * (time.perf_counter() - begun), 1000 * (time.process_time() - spent)


if __name__ == "__main__":
    main()
