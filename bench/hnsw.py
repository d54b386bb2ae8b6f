"""What the index of vectors in PostgreSQL finds over real texts: `python -m bench.hnsw SERVER FOLDER...`.

Starts a server whose data is in the folder SERVER, stores the passages of collections (see `bench.vector_lists`) in it,
and builds the index as an index run does. Printed are the share of the 50 nearest that is found, on the average and of
the worst question, the milliseconds of a question, of comparing all and by the index, both in the server, the time of
building, and sizes. Figures are in docs/scaling.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.postgres import server
from bench.vector_lists import BLOCK, WANTED, Everything, collections, embedded, of_size
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.postgres.adapters import VectorBytes
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.pipeline.ports import Vectors

SELECTED = 250
"""Rows that a search with the shipped limits takes of the index."""
COMPARED = 20
"""Questions that are also compared with all vectors by the server."""


def store_rows(database: Database, rows: Vectors) -> None:
    """Stores vectors as those of passages 0, 1 and so on; of passages themselves there are none."""
    with database.write() as txn:
        connection: Any = txn.connection
        for begin in range(0, len(rows), BLOCK):
            block = enumerate(rows[begin : begin + BLOCK], begin)
            connection.send_many(
                "INSERT INTO chunk_vectors (rowid, embedding) VALUES ($1, $2)",
                [[number, VectorBytes(row.astype(np.float32).tobytes())] for number, row in block],
            )
        set_meta(txn, vectors.DIMENSIONS, str(rows.shape[1]))
    database.reader().session.execute("ANALYZE chunk_vectors")  # type: ignore[attr-defined]


def measure(database: Database, rows: Vectors, questions: Vectors) -> dict[str, float]:
    """All figures of these rows."""
    connection: Any = database.reader()
    index: Any = database.vector_index
    ids = np.arange(len(rows), dtype=np.int64)
    matrix, everything = VectorMatrix(ids, ids, rows), Everything(len(rows))
    began = time.perf_counter()
    index.build(rows.shape[1])
    built = time.perf_counter() - began
    shares, by_index, by_all = [], [], []
    for number, question in enumerate(questions):
        meant = matrix.nearest(question, WANTED, everything, "chunk")[0]
        direction = matrix.direction(question)
        assert direction is not None
        began = time.perf_counter()
        near = index.near(direction.astype(np.float32), SELECTED)
        by_index.append(time.perf_counter() - began)
        found = matrix.ranked(direction, near, WANTED, everything, "chunk")[0]
        shares.append(len(np.intersect1d(meant, found)) / WANTED)
        if number < COMPARED:
            began = time.perf_counter()
            vectors.nearest_exact(connection, direction.astype(np.float32), SELECTED)
            by_all.append(time.perf_counter() - began)
    sizes = "SELECT pg_table_size('chunk_vectors') / 1e6, pg_relation_size(indexrelid) / 1e6 FROM pg_index "
    sizes += "WHERE indexrelid::regclass::text LIKE 'hnsw%'"
    table_mb, index_mb = connection.session.execute(sizes).fetchone()
    return {
        "rows": len(rows),
        "found": float(np.mean(shares)),
        "worst": min(shares),
        "all_ms": 1e3 * float(np.median(by_all)),
        "index_ms": 1e3 * float(np.median(by_index)),
        "index_p95_ms": 1e3 * float(np.quantile(by_index, 0.95)),
        "built_s": built,
        "table_mb": float(table_mb),
        "index_mb": float(index_mb),
    }


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.hnsw", description=__doc__)
    parser.add_argument("server", type=Path, help="an empty folder for the server's data")
    parser.add_argument("folders", nargs="+", type=Path, help="collections in the form of BEIR")
    parser.add_argument("--rows", type=int, default=200_000, help="number of passages (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=300, help="questions drawn (default: %(default)s)")
    asked = parser.parse_args()
    rows, questions = embedded(collections(asked.folders))
    chosen = np.random.default_rng(0).permutation(len(questions))[: asked.questions]
    folder = asked.server.resolve()
    with server(folder / "server") as url:
        link = folder / "memory.store"
        link.write_text(f"{url}\n", encoding="utf-8")
        rows = of_size(rows, asked.rows)
        with Database.open(link) as database:
            store_rows(database, rows)
            figures = measure(database, rows, questions[chosen])
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
