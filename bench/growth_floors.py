"""One process that measures searches and the floor (bench/floor.py) in turns. Run by bench/growth.py."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from bench.growth_probe import QUERIES
from bench.one_thread import one_thread


def floors(path: Path, memories: int) -> dict[str, float]:
    """Milliseconds of the floor, and what searches take in multiples of it, by complexity: processor time of both."""
    import numpy as np

    from bench.floor import Floor
    from bench.settling import settle
    from bench.steps import COMPLEXITIES
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory

    corpus = Corpus(memories)
    found: dict[str, float] = {}
    with Memory.open(path, "default", root=path.parent, environ={}, shadows=False) as memory:
        floor = Floor(memory)
        settle(memory, corpus.queries("complex", 20))
        for complexity in COMPLEXITIES:
            units, spent = [], []
            for query in corpus.queries(complexity, QUERIES):
                question = floor.question(query)
                units.append(floor.measure(question))
                begun = time.thread_time()
                memory.search(query, deadline_ms=None)
                spent.append(1000 * (time.thread_time() - begun))
                units.append(floor.measure(question))
            unit = float(np.median(units))
            found[f"{complexity}_floor_ms"] = unit
            for share in (50, 95):
                found[f"{complexity}_p{share}_floors"] = float(np.percentile(spent, share)) / unit
    return found


if __name__ == "__main__":
    one_thread()
    print(json.dumps(floors(Path(sys.argv[1]), int(sys.argv[2]))))
