"""What a store takes on disk, by table, index and part of its segment, in multiples of the texts it holds.

`python -m bench.store_size STORE...` prints a table for each store. A store of made texts comes from `bench.synthetic`;
figures stand in docs/decisions/0114-smaller-stores.md. The stores are only read.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np

from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.segment_store import folder_of
from speckit_memory.server.console.output import table

LEAST = 0.005
"""Share of the whole below which parts are summed up."""
_PAGES = """
SELECT coalesce(s.tbl_name, p.name), sum(p.pgsize), sum(p.unused) FROM dbstat p
LEFT JOIN sqlite_schema s ON s.name = p.name GROUP BY 1
"""
_TEXT = "SELECT sum(length(CAST(body AS BLOB))) FROM bodies"
_SHADOWS = ("memory_fts", "surface_fts", "chunk_vectors")
"""Virtual tables, whose shadow tables are counted as one."""


def sizes(store: Path) -> tuple[dict[str, tuple[int, int]], int]:
    """Bytes and unused bytes by table (its indexes included) and by part of the segment, and the bytes of all texts."""
    found: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    with closing(apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        for name, taken, unused in connection.execute(_PAGES):
            of = next((virtual for virtual in _SHADOWS if name.startswith(virtual)), name)
            found[f"table {of}"][0] += taken
            found[f"table {of}"][1] += unused
        free = connection.pragma("freelist_count") * connection.pragma("page_size")
        found["free pages"] = [free, free]
        text = connection.execute(_TEXT).get
    for file in folder_of(store).glob("*.seg"):
        segment = Container.open(file)
        for name in segment.names():
            found[f"segment {name.rpartition('.')[0] or name}"][0] += segment.array(name).nbytes
    return {name: (taken, unused) for name, (taken, unused) in found.items()}, int(text or 0)


def report(store: Path) -> str:
    """The sizes as a table, largest first, and their sum by the texts."""
    found, text = sizes(store)
    total = sum(taken for taken, _ in found.values())
    large = {name: of for name, of in found.items() if of[0] >= LEAST * total}
    small = np.array([of for name, of in found.items() if name not in large] or [(0, 0)]).sum(axis=0).tolist()
    rows = [
        (name, f"{taken / 1e6:,.1f}", f"{unused / 1e6:,.1f}", f"{taken / total:.1%}", f"{taken / text:.2f}")
        for name, (taken, unused) in [
            *sorted(large.items(), key=lambda each: -each[1][0]),
            ("everything else", tuple(small)),
            ("altogether", (total, sum(unused for _, unused in found.values()))),
        ]
    ]
    return table((("part", "MB", "of it unused", "share", "by text"), *rows), right=(1, 2, 3, 4), headed=True)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(f"{argument}\n{report(Path(argument))}\n")
