"""Start, memory and latency of `serve --shared` against servers that each client has for itself.

Run it with `python -m bench.shared STORE`, over a copy of a store that `bench.synthetic` made, on a machine that does
nothing else. Processes of both kinds are measured in turns; figures are medians. Figures stand in
docs/decisions/0116-one-process-for-several-agents.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from bench.synthetic import Corpus

COMMAND = Path(sys.executable).parent / "speckit-memory"
AGENTS = 4
INITIALIZE = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


class Agent:
    """A client of a server over stdio. It parses no answers."""

    def __init__(self, store: Path, runtime: Path, *arguments: str) -> None:
        """Starts the server, and measures until it has answered the first request."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECKIT_")}
        self._log = (runtime / f"log-{time.monotonic_ns()}").open("w+b")
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [COMMAND, "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=kept | {"SPECKIT_ROOT": str(store.parent), "SPECKIT_DB": str(store), "XDG_RUNTIME_DIR": str(runtime)},
        )
        self.pid = self._process.pid
        self._ask(INITIALIZE)
        self.start_ms = 1000 * (time.perf_counter() - began)
        self._say({"method": "notifications/initialized"})

    def shared_process(self) -> int:
        """The process behind this front."""
        self._log.seek(0)
        joined = [line for line in self._log.read().splitlines() if b'"client joined"' in line]
        return int(json.loads(joined[-1])["process"])

    def search_ms(self, query: str) -> float:
        """Milliseconds of a search."""
        call = {"method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": query}}}
        return self._ask(call)

    def ping_ms(self) -> float:
        """Milliseconds of a request that does nothing."""
        return self._ask({"method": "ping"})

    def _ask(self, message: Mapping[str, object]) -> float:
        began = time.perf_counter()
        self._say({"id": 1, **message})
        assert self._process.stdout is not None
        while b'"id":1,' not in (line := self._process.stdout.readline())[:40]:
            assert line, "the server has ended"
        return 1000 * (time.perf_counter() - began)

    def _say(self, message: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def close(self) -> float:
        """Ends the server; returns the seconds of processor time it took."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = status
        self._log.close()
        return usage.ru_utime + usage.ru_stime


@contextmanager
def agents(count: int, store: Path, runtime: Path, *arguments: str) -> Iterator[list[Agent]]:
    """Several clients of a store."""
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            started.append(Agent(store, runtime, *arguments))
            stack.callback(started[-1].close)
        yield started


def memory_mb(pid: int, kind: str) -> float:
    """Resident ("Rss") or proportional ("Pss") memory of a process."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def use(started: Sequence[Agent], queries: Sequence[str]) -> None:
    """Searches in turns, so that what servers keep is loaded."""
    for place, query in enumerate(queries):
        started[place % len(started)].search_ms(query)


def print_starts(store: Path, runtime: Path, rounds: int) -> None:
    """Starts of fronts while their process runs, and of servers."""
    found: dict[str, list[tuple[float, float]]] = {"front": [], "server": []}
    with agents(1, store, runtime, "--shared", "--no-warm-up"):
        for _ in range(rounds):
            for name, arguments in (("front", ("--shared", "--no-warm-up")), ("server", ("--no-warm-up",))):
                agent = Agent(store, runtime, *arguments)
                found[name].append((agent.start_ms, 1000 * agent.close()))
    for name, values in found.items():
        start, processor = (median(column) for column in zip(*values, strict=True))
        print(f"{name}: first answer after {start:.0f} ms, processor {processor:.0f} ms")


def print_memory(store: Path, runtime: Path, queries: Sequence[str]) -> None:
    """Memory of one server and of several, each after as many searches altogether."""
    totals = {}
    for name, count, arguments in (
        ("one server", 1, ()),
        (f"{AGENTS} servers", AGENTS, ()),
        (f"{AGENTS} fronts and their process", AGENTS, ("--shared",)),
    ):
        with agents(count, store, runtime, *arguments) as started:
            use(started, queries)
            time.sleep(2)
            processes = [agent.pid for agent in started]
            if arguments:
                resident = [memory_mb(pid, "Rss") for pid in processes]
                print(f"a front: {max(resident):.0f} MB resident")
                processes.append(started[0].shared_process())
            totals[name] = sum(memory_mb(pid, "Pss") for pid in processes)
            print(f"{name}: {totals[name]:.0f} MB proportional")
    one, many, shared = totals.values()
    print(f"{AGENTS} servers {many / one:.2f} × one, {AGENTS} fronts {shared / one:.2f} ×")


def print_latency(store: Path, runtime: Path, queries: Sequence[str]) -> None:
    """What a front adds to a request and to a search, in turns with a server."""
    with agents(1, store, runtime) as alone, agents(1, store, runtime, "--shared") as shared:
        pair = (*alone, *shared)
        for agent in pair:
            agent.search_ms("warm up")
        time.sleep(2)
        pings = [[agent.ping_ms() for agent in pair] for _ in range(1000)]
        searches = [[agent.search_ms(query) for agent in pair] for query in queries]
    for name, rows in (("ping", pings), ("search", searches)):
        server, front = (median(column) for column in zip(*rows, strict=True))
        added = median(row[1] - row[0] for row in rows)
        print(f"{name}: server {server:.2f} ms, through a front {front:.2f} ms, added {added:.2f} ms")


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--memories", type=int, default=10_000, help="the size the store was made with")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--queries", type=int, default=200)
    asked = parser.parse_args()
    corpus = Corpus(asked.memories)
    corpus._random = np.random.default_rng(int(time.time()))  # words of the store, other queries in each run
    queries = corpus.queries("moderate", asked.queries)
    with TemporaryDirectory(prefix="run-") as runtime:
        print_starts(asked.store, Path(runtime), asked.rounds)
        print_memory(asked.store, Path(runtime), queries)
        print_latency(asked.store, Path(runtime), corpus.queries("moderate", asked.queries))


if __name__ == "__main__":
    main()
