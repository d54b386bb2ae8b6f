"""One process that opens a store, asks it, and says what that took; then it waits, its memory held, until told to end.

Run by bench/growth.py. Times are milliseconds of processor time, beyond interpreter and imports.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.one_thread import one_thread

QUERIES = 40


def memory_bytes() -> dict[str, int]:
    """What this process alone maps, and what it shares with others, files in memory included; and of both together its
    own memory (`anonymous`), which belongs to no file, and pages of files (`file`), which the system may drop.

    A page of a file that no other process has touched counts as private, although it costs nothing that is needed.
    """
    held: dict[str, int] = {"private": 0, "shared": 0, "anonymous": 0}
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines():
        name, _, size = line.partition(":")
        kind = name.partition("_")[0].lower()
        if kind in held:
            held[kind] += int(size.split()[0]) * 1024
    held["file"] = held["private"] + held["shared"] - held["anonymous"]
    return held


def probe(path: Path, memories: int) -> dict[str, float]:
    """Opens the store and searches it with the default pipeline."""
    import numpy as np

    from bench.settling import settle
    from bench.steps import COMPLEXITIES
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory

    corpus = Corpus(memories)
    asked = {complexity: corpus.queries(complexity, QUERIES) for complexity in COMPLEXITIES}
    first = corpus.queries("moderate", 1)[0]
    before, begun = memory_bytes(), time.process_time()
    found: dict[str, float] = {}
    with Memory.open(path, "default", root=path.parent, environ={}, shadows=False) as memory:
        found["open_ms"] = 1000 * (time.process_time() - begun)
        memory.search(first, deadline_ms=None)
        found["first_answer_ms"] = 1000 * (time.process_time() - begun)
        settle(memory, corpus.queries("complex", 20))
        for complexity, queries in asked.items():
            spent = []
            for query in queries:
                begun = time.thread_time()
                memory.search(query, deadline_ms=None)
                spent.append(1000 * (time.thread_time() - begun))
            for share in (50, 95):
                found[f"{complexity}_p{share}_ms"] = float(np.percentile(spent, share))
        after = memory_bytes()
        found |= {f"{kind}_bytes": after[kind] for kind in after}
        for kind in ("private", "anonymous"):
            found[f"{kind}_beyond_imports_bytes"] = after[kind] - before[kind]
        print(json.dumps(found), flush=True)
        sys.stdin.read()
    return found


if __name__ == "__main__":
    one_thread()
    probe(Path(sys.argv[1]), int(sys.argv[2]))
