"""What a search takes that finds much written since the last one, and one for words that nothing holds.

`python -m bench.catching_up FOLDER --memories N` copies the store of that many memories that `python -m
bench.synthetic FOLDER --memories N` has written, opens the copy, and has another process add documents to it, which
ends without writing a segment. Printed are milliseconds of processor time. Figures stand in
docs/decisions/0078-searches-beside-an-index-run.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.one_thread import one_thread

STEPS = (5_000, 300, 600)
"""So many documents come before each search but the first."""
WORDS = ("zzxqjwkvp", "qqxzjwkvpo", "wqxzjwkypo")
"""Words that no memory holds, nor a near one."""
WRITE = "--write"


def write(store: Path, documents: int, prefix: str) -> None:
    """Adds documents, in a process of its own that ends at once."""
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory
    from speckit_memory.memory.store.segment_files.segment_store import SegmentStore

    SegmentStore.next_step = lambda _: None  # type: ignore[assignment, method-assign]
    with Memory.open(store, "default", root=store.parent, environ={}, shadows=False) as memory:
        sources = Corpus(documents).sources()
        memory.index_documents([replace(source, key=f"{prefix}/{source.key}") for source in sources])
        os._exit(0)


def measure(store: Path, memories: int) -> None:
    """Searches a store, which is written to meanwhile."""
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory

    corpus = Corpus(memories)
    queries = iter(corpus.queries("moderate", 40))
    with Memory.open(store, "default", root=store.parent, environ={}, shadows=False) as memory:

        def search(what: str, query: str) -> None:
            begun = time.thread_time()
            memory.search(query, deadline_ms=None)
            print(f"{what}: {1000 * (time.thread_time() - begun):.0f} ms", flush=True)

        for _ in range(10):
            memory.search(next(queries), deadline_ms=None)
        search("of no change", next(queries))
        for word in WORDS:
            search("of a word that nothing holds", word)
        for number, documents in enumerate(STEPS):
            arguments = [WRITE, str(number), "--memories", str(documents), str(store)]
            subprocess.run([sys.executable, "-m", "bench.catching_up", *arguments], check=True)
            search(f"after {documents:,} documents more", next(queries))
            search("again", next(queries))


def main() -> None:
    """Measures a copy of the store in the folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.catching_up", description="Searches that catch up.")
    parser.add_argument("folder", type=Path, help="where the store is")
    parser.add_argument("--memories", type=int, default=10_000, help="how many memories it has (default: %(default)s)")
    parser.add_argument(WRITE, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    one_thread()
    if chosen.write is not None:
        write(chosen.folder, chosen.memories, chosen.write)
    source = chosen.folder / "memory.db"
    with TemporaryDirectory(dir=chosen.folder) as copied:
        store = Path(copied) / source.name
        shutil.copy(source, store)
        shutil.copytree(f"{source}.segments", f"{store}.segments")
        measure(store, chosen.memories)


if __name__ == "__main__":
    main()
