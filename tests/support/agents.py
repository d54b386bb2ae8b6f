"""Scripted sessions of agents: each client makes mixed calls, and what was acknowledged must be in the store."""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from speckit_memory.engine import Memory
from tests.server.doors import COMMAND, DOCUMENTS, environment

Step = tuple[str, dict[str, Any]]
Connect = Callable[[], AbstractAsyncContextManager[Client]]
KEYS = sorted(DOCUMENTS)
ASKED = (
    "why are ranks fused",
    "write-ahead log",
    "how is a backup made",
    "computeMPAB",
    "quokka cache",
    "全文検索",
    "tone",
)


@dataclass
class Made:
    """What came of sessions."""

    seconds: list[float] = field(default_factory=list)
    """How long each call took."""
    errors: list[str] = field(default_factory=list)
    saved: dict[str, str] = field(default_factory=dict)
    """By each word that a client was told to be saved, the key of the memory that holds it."""
    links: set[tuple[str, str]] = field(default_factory=set)
    tasks: set[tuple[str, str]] = field(default_factory=set)
    """Folder and name."""
    judged: int = 0
    stale: list[str] = field(default_factory=list)
    """Words acknowledged to one client that the next search of another did not find."""

    def p95(self) -> float:
        """The 95th percentile of a call, in seconds."""
        return sorted(self.seconds)[int(0.95 * (len(self.seconds) - 1))]


def steps(client: str, calls: int, seed: int) -> Iterator[Step]:
    """The calls of one client, of whose writes none is made by another: two reads of three, and a write."""
    drawn = random.Random(f"{seed} {client}")
    written: list[str] = []
    for number in range(calls):
        word = f"zz{client}x{number}"
        reads: Sequence[Step] = (
            ("memory_context", {"input": drawn.choice(ASKED), "sessionId": drawn.choice(["", client])}),
            ("memory_search", {"query": drawn.choice(ASKED), "limit": drawn.choice([3, 10])}),
            ("memory_search", {"query": drawn.choice(ASKED), "sessionId": client}),
            ("memory_match_triggers", {"prompt": f"{drawn.choice(ASKED)} and reciprocal rank fusion"}),
            ("memory_list", {"limit": 5}),
            ("memory_drift_why", {"memoryId": drawn.choice(KEYS)}),
            ("memory_stats", {}),
        )
        if number % 3:
            yield drawn.choice(reads)
            continue
        path = f"agents/{client}/{number}.md"
        writes: list[Step] = [
            ("memory_save", {"content": f"# Note {word}\n\nWhat {word} found out.\n", "filePath": path, "force": True}),
            ("memory_validate", {"id": 1, "wasUseful": True}),
            ("task_preflight", {"specFolder": client, "taskId": word, "knowledgeScore": 10, "uncertaintyScore": 50,
                                "contextScore": 30}),
        ]  # fmt: skip
        if written:
            linked = {"sourceId": written[-1], "targetId": drawn.choice(KEYS), "relation": "supports"}
            changed = {"content": f"Once more {word}.", "filePath": written[-1], "edit": "append", "force": True}
            writes += [("memory_causal_link", linked), ("memory_save", changed)]
        tool, arguments = writes[(number // 3) % len(writes)]
        if tool == "memory_save" and "edit" not in arguments:
            written.append(path)
        yield tool, arguments


def _noted(made: Made, tool: str, arguments: dict[str, Any]) -> None:
    if tool == "memory_save":
        made.saved[arguments["content"].split()[2].strip(".")] = arguments["filePath"]
    elif tool == "memory_causal_link":
        made.links.add((arguments["sourceId"], arguments["targetId"]))
    elif tool == "task_preflight":
        made.tasks.add((arguments["specFolder"], arguments["taskId"]))
    elif tool == "memory_validate":
        made.judged += 1


async def _session(connected: Connect, work: Iterator[Step], made: Made) -> None:
    async with connected() as client:
        for tool, arguments in work:
            begun = time.perf_counter()
            result = await client.call_tool(tool, arguments)
            made.seconds.append(time.perf_counter() - begun)
            if result.is_error:
                made.errors.append(f"{tool} {arguments}: {result.structured_content}")
            else:
                _noted(made, tool, arguments)
                await _find_last(client, tool, made)


async def _find_last(client: Client, tool: str, made: Made) -> None:
    """After a search, asks for the word that was acknowledged last, whichever client saved it."""
    if tool == "memory_search" and made.saved:
        word, key = list(made.saved.items())[-1]
        found = await client.call_tool("memory_search", {"query": word, "limit": 3})
        if key not in json.dumps(found.structured_content):
            made.stale.append(f"{word} in {key}: {found.structured_content}")


def sessions(connected: Connect, clients: int, calls: int, *, seed: int, name: str) -> Made:
    """So many clients at once, each with its own connection and so many calls."""
    made = Made()

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for number in range(clients):
                client = f"{name}{number}"
                group.start_soon(_session, connected, steps(client, calls, seed), made)

    anyio.run(all_of_them)
    return made


def over_stdio(root: Path, *arguments: str) -> Connect:
    """Each client starts a server of its own, all on one store."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        served = StdioServerParameters(
            command=str(COMMAND), args=["serve", *arguments], env=environment(root), cwd=root
        )
        async with Client(served) as client:
            yield client

    return connect


def over_http(url: str) -> Connect:
    """All clients share a server."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        async with Client(url) as client:
            yield client

    return connect


@contextmanager
def the_store(root: Path) -> Iterator[Memory]:
    """What another process finds in the end."""
    with Memory.open(root / "memory.db", root=root, create=False) as memory:
        yield memory


def lost(root: Path, *all_made: Made, judged_before: int = 0) -> list[str]:
    """Which acknowledged writes the store does not hold, and what is wrong with it."""
    found: list[str] = []
    with the_store(root) as memory:
        for made in all_made:
            for word, key in made.saved.items():
                if word not in memory.documents.read(key).text:
                    found.append(f"{key} does not hold {word}")
            for source, target in sorted(made.links):
                steps_ = memory.graph.lineage(source, direction="outgoing", depth=1).steps
                if target not in {step.target for step in steps_}:
                    found.append(f"there is no link from {source} to {target}")
        asked = {task for made in all_made for task in made.tasks}
        known = {
            (task.folder, task.task)
            for folder in {folder for folder, _ in asked}
            for task in memory.learning.history(folder, limit=100).tasks
        }
        found += [f"task {task} is lost" for task in sorted(asked - known)]
        judged = memory.get(1).validation_count - judged_before
        if judged != sum(made.judged for made in all_made):
            found.append(f"{judged} judgements of {sum(made.judged for made in all_made)}")
        found += memory.lifecycle.check()
    return found
