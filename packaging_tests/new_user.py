"""A first day with an installed server, as an agent has it: the server is started as the client's file says, in the
folder of the project; what came of it is printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

DECISION = "# Accounts in Postgres\n\nAccounts are kept in Postgres. SQLite was turned down: servers cannot share it.\n"
POOL = "# Pool of connections\n\nEach server opens a pool of ten connections to Postgres.\n"
QUESTIONS = (
    "where are accounts kept?",
    "how do users sign in?",
    "may secrets go into the repository?",
)
SESSION = {"sessionId": "first day"}
TASK: dict[str, Any] = {
    "specFolder": "specs/001-login", "taskId": "pool", "knowledgeScore": 30, "uncertaintyScore": 60, "contextScore": 40,
    "knowledgeGaps": ["what if none is free?"],
}  # fmt: skip


async def main(file: str, folder: str) -> None:
    configured = json.loads(Path(file).read_text())["mcpServers"]["speckit-memory"]
    server = StdioServerParameters(**configured, cwd=folder)
    report: dict[str, Any] = {}

    async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            raise SystemExit(f"{tool}: {result.content}")
        return dict(result.structured_content)

    async with Client(server) as client:
        decision, pool = [(await call(client, "memory_save", content=text))["data"]["key"] for text in (DECISION, POOL)]
        report["saved"] = [decision, pool]
        found = [await call(client, "memory_search", query=question, limit=1, **SESSION) for question in QUESTIONS]
        report["found"] = [answer["data"]["results"][0]["key"] for answer in found]
        again = await call(client, "memory_search", query=QUESTIONS[0], limit=1, **SESSION)
        report["again"] = again["hints"]
        await call(client, "memory_causal_link", sourceId=pool, targetId=decision, relation="derived_from")
        report["lineage"] = (await call(client, "memory_drift_why", memoryId=pool))["data"]
        deleted = await call(client, "memory_delete", id=decision)
        report["there"] = [(Path(file).parent / decision).exists()]
        report["undone"] = (await call(client, "memory_delete", undo=deleted["data"]["undo"]))["summary"]
        report["there"].append((Path(file).parent / decision).exists())
        await call(client, "task_preflight", **TASK, **SESSION)
    async with Client(server) as client:
        report["resumed"] = (await call(client, "memory_context", input="where were we?", **SESSION))["data"]
    print(json.dumps(report))


anyio.run(main, sys.argv[1], sys.argv[2])
