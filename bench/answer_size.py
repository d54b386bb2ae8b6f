"""What answers cost an agent: characters and tokens of the text of each tool, beside those of its JSON.

Run it with `python -m bench.answer_size`. It indexes the project's own documents into a temporary store, asks it
through the server and the SDK's client, and counts with the bundled tokeniser. Figures stand in
docs/decisions/0019-answers-in-markdown.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from mcp import Client

from speckit_memory.engine import Memory
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.models.embedders.counting import estimated_tokens
from speckit_memory.server.commands.demo import QUESTIONS, corpus
from speckit_memory.server.console.output import table
from speckit_memory.server.logging import logs
from speckit_memory.server.mcp_server.app import build
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace

CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "memory_search, 5 rows": [("memory_search", {"query": asked.text, "limit": 5}) for asked in QUESTIONS],
    "memory_search, 10 rows asked": [("memory_search", {"query": asked.text}) for asked in QUESTIONS],
    "memory_context": [("memory_context", {"input": asked.text}) for asked in QUESTIONS],
    "memory_list": [("memory_list", {})],
    "memory_stats": [("memory_stats", {})],
    "memory_health": [("memory_health", {})],
    "an error": [("memory_search", {"query": "x", "limitt": 3})],
}
TOKENISER = StaticEmbedder()


def answers(memory: Memory) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The text and the structured content of every answer."""

    async def work() -> dict[str, list[tuple[str, dict[str, Any]]]]:
        server = build(Workspace(lambda _create: memory, memory.session.settings), warm_up=False, limits=ThreadLimits())
        async with Client(server) as client:
            found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
            for name, calls in CALLS.items():
                for tool, arguments in calls:
                    result = await client.call_tool(tool, arguments)
                    found.setdefault(name, []).append((result.content[0].text, result.structured_content or {}))  # type: ignore[union-attr]  # tools answer with text
            return found

    return anyio.run(work)


def main() -> None:
    """Prints the mean size of each kind of answer, and how far two cheaper counts of its tokens are off."""
    logs.configure()
    rows = [("answer", "characters", "as JSON", "tokens", "as JSON", "saved", "rows", "four characters", "estimate")]
    with TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db", root=folder, environ={}) as memory:
        memory.index_documents(corpus())
        for name, found in answers(memory).items():
            texts = [text for text, _ in found]
            documents = [json.dumps(data, ensure_ascii=False, separators=(",", ":")) for _, data in found]
            characters, json_characters = (sum(map(len, kind)) / len(kind) for kind in (texts, documents))
            tokens, json_tokens = (sum(TOKENISER.count_tokens(kind)) / len(kind) for kind in (texts, documents))
            counts = [data.get("data", {}).get("count", 0) for _, data in found]
            estimate = sum(map(estimated_tokens, texts)) / len(texts)
            rows.append(
                (name, f"{characters:.0f}", f"{json_characters:.0f}", f"{tokens:.0f}", f"{json_tokens:.0f}",
                 f"{1 - tokens / json_tokens:.0%}", f"{sum(counts) / len(counts):.1f}",
                 f"{characters / 4 / tokens - 1:+.0%}", f"{estimate / tokens - 1:+.0%}")
            )  # fmt: skip
    print(table(rows, right=range(1, 9)))


if __name__ == "__main__":
    main()
