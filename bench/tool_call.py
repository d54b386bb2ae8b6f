"""What a search costs through the server, from bytes to bytes, beyond the same search in Python.

Run it with `python -m bench.tool_call STORE`, over a copy of a store that `bench.synthetic` made. Server and library
share one open store; each query is asked once, the next one by the other. What counts is processor time: of all threads
but the client's for the server, and of the searching thread for the library. Figures stand in
docs/decisions/0112-one-state-per-call.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

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
        Thread(target=anyio.run, args=(server.run_on, wire), daemon=True).start()
        self._requests = 0
        self._request("initialize", CLIENT)

    def search(self, query: str) -> None:
        """Searches, and requires an answer."""
        answer = self._request("tools/call", {"name": "memory_search", "arguments": {"query": query, "limit": LIMIT}})
        assert b'"results"' in answer, answer[:500]

    def _request(self, method: str, params: dict[str, object]) -> bytes:
        self._requests += 1
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params}
        self._out.write(json.dumps(message).encode() + b"\n")
        return self._in.readline()


def milliseconds(work: Callable[[], object], *, elsewhere: bool) -> float:
    """Processor time of this thread, or of the others while this one waits."""
    whole, own = time.process_time(), time.thread_time()
    work()
    own = time.thread_time() - own
    return 1000 * (time.process_time() - whole - own if elsewhere else own)


def main() -> None:
    """Prints the medians of both, and their difference, for each complexity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--calls", type=int, default=400)
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
            search, call = [], []
            for query, other in zip(*[iter(corpus.queries(complexity, 2 * asked.calls))] * 2, strict=True):
                search.append(
                    milliseconds(
                        lambda: memory.search(query, limit=LIMIT, snippet=SHIPPED_FORM.excerpt),  # noqa: B023
                        elsewhere=False,
                    )
                )
                call.append(milliseconds(lambda: client.search(other), elsewhere=True))  # noqa: B023
            library, tool = float(np.median(search)), float(np.median(call))
            print(
                f"{complexity}: search {library:.2f} ms, call {tool:.2f} ms, beyond the search {tool - library:.2f} ms"
            )


if __name__ == "__main__":
    main()
