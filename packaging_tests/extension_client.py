"""Talks to an installed server whose pipeline is that of an extension: scan, search with an explanation."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters


async def main(command: str, folder: str) -> None:
    passed = {name: value for name, value in os.environ.items() if name.startswith("SPECKIT_")}
    server = StdioServerParameters(command=command, args=["serve"], cwd=folder, env=passed)
    async with Client(server) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            if result.is_error or result.structured_content is None:
                raise SystemExit(f"{tool}: {result.content}")
            return result.structured_content["data"]

        await call("memory_index_scan")
        found = await call("memory_search", query="gateway retries", explain=True)
    rows = {
        row["key"]: {
            "channels": sorted(row["channels"]),
            "steps": [step["step"] for step in row["steps"]],
            "notes": sorted(row.get("notes", {})),
        }
        for row in found["results"]
    }
    print(json.dumps(rows))


anyio.run(main, sys.argv[1], sys.argv[2])
