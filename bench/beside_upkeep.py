"""Searches while background upkeep runs, against searches of an idle process: `python -m bench.beside_upkeep FOLDER`.

FOLDER holds a store of `python -m bench.synthetic`; a copy of it is used. Each job runs with the priority and the
pauses of the maintenance thread, again and again, in turns with idle spells. A caller asks distinct queries with a
pause after each answer. Printed are milliseconds of the clock, as waiting counts, and items done. Figures stand in
docs/decisions/0117-upkeep-memory-and-a-large-store.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.one_thread import one_thread

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.upkeep.maintenance_jobs import Job

SPELL_SECONDS = 5.0
THINKING_SECONDS = 0.02
"""Between an answer and the next query."""


@contextmanager
def upkeep(memory: Memory, job: Job) -> Iterator[None]:
    """Runs a job in a thread, again as soon as it ended."""
    from speckit_memory.engine.upkeep import maintenance, upkeep_thread
    from speckit_memory.memory.store.segment_files.findings import GivenUpError
    from speckit_memory.pipeline.process.yielding import yielding

    opened, thread, over = memory.session.opened, memory.session.upkeep, threading.Event()

    def pause() -> None:
        if over.is_set():
            raise GivenUpError
        thread._pause()

    def work() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), upkeep_thread.NICENESS)
        try:
            while not over.is_set():
                with yielding(pause):
                    report = maintenance.run_due(opened.database, [replace(job, seconds=0.0)])
                if not report.jobs[0].count:
                    return
        except GivenUpError:
            return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def spell(memory: Memory, queries: Iterator[str], seconds: float) -> list[float]:
    """Milliseconds of searches, for so long."""
    taken, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        time.sleep(THINKING_SECONDS)
        query, begun = next(queries), time.perf_counter()
        memory.search(query, deadline_ms=None)
        taken.append(1000 * (time.perf_counter() - begun))
    return taken


def main() -> None:
    """Prints a row for each job that has something to do."""
    one_thread()
    import numpy as np

    from bench.settling import settle
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory
    from speckit_memory.engine.upkeep.maintenance_jobs import NAME_JOBS, jobs_for

    parser = argparse.ArgumentParser(prog="python -m bench.beside_upkeep", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", nargs="*", help="by default all that have something to do")
    chosen = parser.parse_args()
    with TemporaryDirectory(dir=chosen.folder.parent) as scratch:
        copied = shutil.copytree(chosen.folder, Path(scratch) / "store")
        with Memory.open(copied / "memory.db", "default", root=copied, environ={}, shadows=False) as memory:
            opened = memory.session.opened
            corpus = Corpus(memory.session.view().attributes.count)
            queries = iter(corpus.queries("moderate", 100_000))
            settle(memory, corpus.queries("complex", 20))
            print(f"{'ms':16} {'idle p50':>8} {'p95':>6} {'beside p50':>10} {'p95':>6} {'/p50':>5} {'/p95':>5} done")
            for job in (*jobs_for(opened), *NAME_JOBS):
                if (chosen.jobs and job.name not in chosen.jobs) or not job.waiting(
                    opened.database.reader(), time.time()
                ):
                    continue
                idle, beside, done = list[float](), list[float](), 0
                for _ in range(chosen.rounds):
                    idle += spell(memory, queries, SPELL_SECONDS)
                    waiting = job.waiting(opened.database.reader(), time.time())
                    with upkeep(memory, job):
                        beside += spell(memory, queries, SPELL_SECONDS)
                    done += waiting - job.waiting(opened.database.reader(), time.time())
                (calm, slow), (busy, late) = (np.percentile(some, (50, 95)) for some in (idle, beside))
                print(
                    f"{job.name:16} {calm:8.1f} {slow:6.1f} {busy:10.1f} {late:6.1f} {busy / calm:5.2f} "
                    f"{late / slow:5.2f} {done:4}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
