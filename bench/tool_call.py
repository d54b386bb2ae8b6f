"""What a search costs through the server, from bytes to bytes, beyond the same search in Python.

Run it with `OPENBLAS_NUM_THREADS=1 python -m bench.tool_call STORE`, over a copy of a store of `bench.synthetic`.
Every query is searched first; while the server is asked, its searches return these results at once. What counts is the
processor time of all threads but the client's. Figures stand in docs/decisions/0112-one-state-per-call.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import anyio
import numpy as np

from bench.settling import settle
from bench.synthetic import Corpus
from speckit_memory.engine import Memory
from speckit_memory.server.jsonrpc.wire import JsonRpcWire
from speckit_memory.server.mcp_server.app import build
from speckit_memory.server.replies.answer_form import SHIPPED_FORM
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
WARMING = 60
LIMIT = 10


class Client:
    """A client of a server in a thread of this process, over two pipes."""

    def __init__(self, memory: Memory) -> None:
        workspace = Workspace(lambda _create: memory, memory.session.settings)
        server = build(workspace, warm_up=False, limits=ThreadLimits())
        source, to_server = os.pipe()
        from_server, sink = os.pipe()
        self._out, self._in = os.fdopen(to_server, "wb", 0), os.fdopen(from_server, "rb")
        wire = JsonRpcWire(source, sink, print)

        async def serve() -> None:
            async with server.running() as serve_client:
                await serve_client(wire)

        Thread(target=anyio.run, args=(serve,), daemon=True).start()
        self._requests = 0
        self._request("initialize", CLIENT)

    def search(self, query: str) -> None:
        """Searches, and requires an answer."""
        answer = self._request("tools/call", {"name": "memory_search", "arguments": {"query": query, "limit": LIMIT}})
        assert b'"results"' in answer, answer[:500]

    def _request(self, method: str, params: Mapping[str, object]) -> bytes:
        self._requests += 1
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        self._out.write(json.dumps(message).encode() + b"\n")
        return self._in.readline()


def milliseconds(work: Callable[[], object]) -> float:
    """Processor time of the other threads while this one waits for them."""
    whole, own = time.process_time(), time.thread_time()
    work()
    own = time.thread_time() - own
    return 1000 * (time.process_time() - whole - own)


def main() -> None:
    """Prints the median for each complexity, and the fifth of the calls below which a busy machine disturbs least."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--memories", type=int, default=1_000, help="the size the store was made with")
    asked = parser.parse_args()
    corpus = Corpus(asked.memories)
    with Memory.open(asked.store, "default", root=asked.store.parent, environ={}, shadows=False) as memory:
        client = Client(memory)
        warming = corpus.queries("complex", WARMING)
        settle(memory, warming)
        for query in warming:
            client.search(query)
        for complexity in ("simple", "moderate", "complex"):
            results = {
                query: memory.search(query, limit=LIMIT, snippet=SHIPPED_FORM.excerpt)
                for query in corpus.queries(complexity, asked.calls)
            }
            with patch.object(memory, "search", lambda query, results=results, **_: results[query]):
                taken = [milliseconds(partial(client.search, query)) for query in results]
            low, median = np.percentile(taken, (20, 50))
            print(f"{complexity}: beyond the search {median:.2f} ms, quickest fifth {low:.2f} ms")


if __name__ == "__main__":
    main()
