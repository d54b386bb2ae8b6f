"""What one uncached tool call asks of files, of the store and of the interpreter, counted: never how long it takes."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
import apsw
from mcp import Client

from speckit_memory.config.files.watching import WatchedFiles
from speckit_memory.memory.store.file.guarding.identity import Identity
from speckit_memory.server.views.rows.row_text import SearchRow
from tests.server.doors import connected

QUERY = "scores of lexical and dense channels"
WORKERS = "AnyIO"
"""How the threads that answer calls are named; what others do meanwhile is not of the call."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts what the threads of calls do inside the block."""
    counts: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **named: Any) -> Any:
            counts[name] += threading.current_thread().name.startswith(WORKERS)
            return function(*arguments, **named)

        return count

    def traced(_cursor: apsw.Cursor, statement: str, _bindings: Any) -> bool:
        counts["statements"] += threading.current_thread().name.startswith(WORKERS)
        return True

    with ExitStack() as patched:
        for owner, name, what in (
            (WatchedFiles, "changed", "looks at files"),
            (Identity, "require", "identities"),
            (SearchRow, "__init__", "rows rendered"),
            (os, "stat", "stats"),
            (os, "lstat", "stats"),
        ):
            patched.enter_context(patch.object(owner, name, counting(what, getattr(owner, name))))
        original = dataclasses.replace
        replace = counting("copies", original)
        for module in tuple(sys.modules.values()):  # one of them is `dataclasses` itself
            if getattr(module, "replace", None) is original:
                patched.enter_context(patch.object(module, "replace", replace))
        for connection in _connections():
            connection.exec_trace = traced
            patched.callback(setattr, connection, "exec_trace", None)
        yield counts


def _connections() -> list[apsw.Connection]:
    return list(apsw.connections())


def counts_of(root: Path, *calls: dict[str, Any]) -> Counter[str]:
    """The counts of the last of these searches, the others being made before."""

    async def asked(client: Client, **arguments: Any) -> dict[str, Any]:
        answer = (await client.call_tool("memory_search", arguments)).structured_content
        assert isinstance(answer, dict) and "error" not in answer
        return answer

    async def session() -> Counter[str]:
        async with connected(root) as client:
            words = QUERY.split()
            for number in range(1, len(words)):  # the first are answered from the file
                await asked(client, query=" ".join(words[number:] + words[:number]))
            for thread in threading.enumerate():
                if thread.name == "read-model builder":
                    await anyio.to_thread.run_sync(thread.join)  # the segment in memory answers from now on
            await asked(client, query=QUERY, limit=3)  # reads once what a new segment leaves to the store
            *before, last = calls
            for arguments in before:
                await asked(client, **arguments)
            with counted() as counts:
                answer = await asked(client, **last)
            assert answer["meta"]["cache_hit"] == bool(before)
            counts["rows"] = len(answer["data"]["results"])
            return counts

    return anyio.run(session)


def test_a_search_that_is_not_cached_asks_once_for_each_state(workspace: Path) -> None:
    counts = counts_of(workspace, {"query": QUERY})
    assert counts["looks at files"] == 1
    assert counts["identities"] == 2  # as it begins and as it ends
    assert counts["stats"] <= 6  # three files, the store's path, its identity twice
    assert counts["statements"] <= 12
    assert counts["copies"] <= 13
    assert counts["rows rendered"] == counts["rows"] > 1


def test_an_answer_over_its_budget_renders_each_row_once(workspace: Path) -> None:
    counts = counts_of(workspace, {"query": QUERY, "tokenBudget": 200})
    assert counts["rows rendered"] >= counts["rows"] >= 1
    assert counts["rows rendered"] <= 10  # the limit: rows that are left out were rendered, too


def test_a_cached_answer_asks_for_the_state_alone(workspace: Path) -> None:
    counts = counts_of(workspace, {"query": QUERY}, {"query": QUERY})
    assert (counts["looks at files"], counts["identities"], counts["stats"]) == (1, 1, 5)
    assert counts["rows rendered"] == 0
    assert counts["statements"] <= 2
