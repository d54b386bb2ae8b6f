"""Talks to an installed server over stdio with the SDK's own client: save, search, list."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters


async def main(command: str, folder: str) -> None:
    server = StdioServerParameters(command=command, args=["serve"], cwd=folder)
    async with Client(server) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            if result.is_error or result.structured_content is None:
                raise SystemExit(f"{tool}: {result.content}")
            data: dict[str, Any] = result.structured_content["data"]
            return data

        saved = await call("memory_save", filePath="gateway.md")
        found = await call("memory_search", query="how often does the gateway retry?")
        listed = await call("memory_list")
    report = {
        "saved": saved["outcome"],
        "found": [row["key"] for row in found["results"]],
        "listed": [row["key"] for row in listed["memories"]],
    }
    print(json.dumps(report))


anyio.run(main, sys.argv[1], sys.argv[2])
