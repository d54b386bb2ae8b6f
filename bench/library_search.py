"""Searches by the library beside the floor and a search written by hand: `python -m bench.library_search FOLDER`.

FOLDER holds a store of `python -m bench.synthetic`. Queries are asked in turns of all three, in one thread and
process; processor time counts. Printed are milliseconds and the ratio of medians.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.one_thread import one_thread

QUERIES = 100


def main() -> None:
    """Prints a row for each complexity."""
    one_thread()
    import numpy as np

    from bench.by_hand import HandWrittenSearch
    from bench.floor import Floor
    from bench.settling import settle
    from bench.steps import COMPLEXITIES
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory

    parser = argparse.ArgumentParser(prog="python -m bench.library_search", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with (
        Memory.open(folder / "memory.db", "default", root=folder, environ={}, shadows=False) as memory,
        tempfile.TemporaryDirectory() as scratch,
    ):
        corpus = Corpus(memory.session.view().attributes.count)
        floor, by_hand = Floor(memory), HandWrittenSearch(memory, Path(scratch) / "by_hand.db")
        warming = corpus.queries("complex", 20)
        settle(memory, warming)
        for query in warming:
            by_hand.search(query)
        print(f"{'ms':10} {'ours p50':>9} {'p95':>6} {'by hand':>8} {'p95':>6} {'floor':>6} {'/hand':>6} {'/floor':>6}")
        for complexity in COMPLEXITIES:
            times = np.array(
                [
                    [
                        _milliseconds(partial(memory.search, query, deadline_ms=None)),
                        _milliseconds(partial(by_hand.search, query)),
                        floor.measure(floor.question(query)),
                    ]
                    for query in corpus.queries(complexity, QUERIES)
                ]
            )
            ours, hand, least = np.median(times, axis=0)
            slow, hand_slow, _ = np.percentile(times, 95, axis=0)
            print(
                f"{complexity:10} {ours:9.2f} {slow:6.2f} {hand:8.2f} {hand_slow:6.2f} {least:6.2f} "
                f"{ours / hand:6.2f} {ours / least:6.2f}",
                flush=True,
            )
        by_hand.close()


def _milliseconds(search: Callable[[], object]) -> float:
    begun = time.thread_time()
    search()
    return (time.thread_time() - begun) * 1000


if __name__ == "__main__":
    main()
