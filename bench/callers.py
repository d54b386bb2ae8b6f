"""Throughput, latency and memory of a server over HTTP, for one client and for several at once.

Run it with `python -m bench.callers STORE --workers 2`, over a copy of a store that `bench.synthetic` made. Queries are
distinct, so no answer comes from a cache. `--growth 5000` asks so many and prints own memory on the way.
Figures stand in docs/decisions/0113-many-callers.md and 0117-upkeep-memory-and-a-large-store.md.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock, Thread

import numpy as np

from bench.synthetic import Corpus

PROTOCOL = "2025-06-18"
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
TICKS = os.sysconf("SC_CLK_TCK")


class Caller:
    """A client with a session, over one connection. It parses nothing, to leave the cores to the server."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = HEADERS
        about = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        session = self._post({"id": 0, "method": "initialize", "params": about})[0]
        self._headers = HEADERS | {"Mcp-Session-Id": session, "MCP-Protocol-Version": PROTOCOL}
        self._post({"method": "notifications/initialized"})

    def search(self, query: str) -> None:
        """Searches, and requires an answer."""
        call = {"name": "memory_search", "arguments": {"query": query}}
        answer = self._post({"id": 1, "method": "tools/call", "params": call})[1]
        assert b'"results"' in answer, answer[:500]

    def _post(self, message: dict[str, object]) -> tuple[str, bytes]:
        self._connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0"} | message), self._headers)
        answer = self._connection.getresponse()
        return answer.getheader("Mcp-Session-Id") or "", answer.read()


@contextmanager
def serving(store: Path, *arguments: str) -> Iterator[tuple[int, int]]:
    """A server of the store; yields its process id and its port."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECKIT_")}
    with subprocess.Popen(
        [Path(sys.executable).parent / "speckit-memory", "serve", "--transport", "http", "--port", "0", *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=kept | {"SPECKIT_ROOT": str(store.parent), "SPECKIT_DB": str(store)},
    ) as server:
        assert server.stderr is not None
        try:
            url: str = json.loads(server.stderr.readline())["url"]
            Thread(target=server.stderr.read, daemon=True).start()
            yield server.pid, int(url.split(":")[2].split("/")[0])
        finally:
            server.send_signal(signal.SIGTERM)


def family(pid: int) -> list[int]:
    """A process and its children."""
    children = (task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children"))
    return [pid, *(int(child) for some in children for child in some)]


def seconds(pid: int) -> float:
    """Processor time of a process and its children."""
    stats = (Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in family(pid))
    return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICKS


def own_megabytes(pid: int) -> list[int]:
    """Private memory of a process and of each of its children."""
    kilobytes = (Path(f"/proc/{one}/smaps_rollup").read_text().split("Private_Dirty:")[1] for one in family(pid))
    return [int(text.split()[0]) // 1024 for text in kilobytes]


def measure(ports: Sequence[int], clients: int, queries: Sequence[str]) -> tuple[float, float, float]:
    """Calls a second of clients that servers share evenly, and the median and 95th percentile of their milliseconds."""
    waiting, turn, taken = iter(queries), Lock(), list[float]()

    def work(caller: Caller) -> None:
        while True:
            with turn:
                query = next(waiting, None)
            if query is None:
                return
            began = time.perf_counter()
            caller.search(query)
            taken.append(time.perf_counter() - began)

    threads = [Thread(target=work, args=(Caller(ports[number % len(ports)]),)) for number in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(taken) / (time.perf_counter() - began)
    p50, p95 = (1000 * float(share) for share in np.percentile(taken, (50, 95)))
    return rate, p50, p95


def grow(store: Path, workers: str, clients: int, corpus: Corpus, calls: int) -> None:
    """Prints own memory after 100, a fifth, and all of the calls."""
    with serving(store, "--workers", workers) as (pid, port):
        asked = 0
        for point in (100, calls // 5, calls):
            measure([port], clients, corpus.queries("moderate", point - asked))
            asked = point
            print(f"own memory after {point} calls: {own_megabytes(pid)} MB", flush=True)


def compare(stores: dict[str, tuple[Path, int]], clients: int, calls: int, rounds: int, corpus: Corpus) -> None:
    """Prints the throughput of the servers of two stores, in turns, and the second's as a multiple of the first's.

    Args:
        stores: Each store, or link to one, by its name in the output, and how many servers it has.
        clients: How many clients share the servers of a store.
        calls: The number of calls of a round.
        rounds: How often each is measured.
        corpus: Gives the queries.
    """
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in stores}
    with ExitStack() as stack:
        ports = {
            name: [stack.enter_context(serving(store))[1] for _ in range(servers)]
            for name, (store, servers) in stores.items()
        }
        for number in range(1 + rounds):  # the first one warms
            for name, found in figures.items():
                found.append(measure(ports[name], clients, corpus.queries("moderate", calls)))
                rate, p50, p95 = found[-1]
                when = f"round {number}" if number else "warming"
                print(f"{name}, {when}: {rate:.1f}/s, p50 {p50:.1f} ms, p95 {p95:.1f} ms", flush=True)
    first, second = (np.median(found[1:], axis=0) for found in figures.values())
    print(f"{clients} clients: throughput {second[0] / first[0]:.2f} ×, p95 {second[2] / first[2]:.2f} ×")


def main() -> None:
    """Prints a line per round and number of clients, then the ratios of their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memories", type=int, default=10_000, help="the size the store was made with")
    parser.add_argument("--growth", type=int, default=0, help="ask so many queries, at least 500, for own memory alone")
    asked = parser.parse_args()
    corpus = Corpus(asked.memories)
    corpus._random = np.random.default_rng(int(time.time()))  # words of the store, other queries in each run
    if asked.growth:
        grow(asked.store, asked.workers, asked.clients, corpus, asked.growth)
        return
    figures: dict[int, list[tuple[float, float, float]]] = {1: [], asked.clients: []}
    with serving(asked.store, "--workers", asked.workers) as (pid, port):
        for clients in figures:  # warm
            measure([port], clients, corpus.queries("moderate", 100))
        print(f"own memory after 200 calls: {own_megabytes(pid)} MB")
        for _ in range(asked.rounds):
            for clients, found in figures.items():
                before = seconds(pid)
                found.append(measure([port], clients, corpus.queries("moderate", asked.calls)))
                cost = 1000 * (seconds(pid) - before) / asked.calls
                rate, p50, p95 = found[-1]
                print(f"{clients} clients: {rate:.1f}/s, p50 {p50:.1f} ms, p95 {p95:.1f} ms, processor {cost:.1f} ms")
        print(f"own memory after {200 + 2 * asked.rounds * asked.calls} calls: {own_megabytes(pid)} MB")
    one, many = (np.median(found, axis=0) for found in figures.values())
    print(f"throughput {many[0] / one[0]:.2f} ×, p95 {many[2] / one[2]:.1f} × that of one client")


if __name__ == "__main__":
    main()
