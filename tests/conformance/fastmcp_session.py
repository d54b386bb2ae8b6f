"""A session of the fastmcp client, run by an environment that has it: prints what went wrong, as JSON.

fastmcp_session.py URL|COMMAND ROOT MODE
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

TOOLS = 23


async def tools(client: Client[Any]) -> None:
    found = {tool.name: tool for tool in await client.list_tools()}
    assert len(found) == TOOLS, sorted(found)
    assert found["memory_search"].output_schema


async def search(client: Client[Any]) -> None:
    result = await client.call_tool("memory_search", {"query": "quokka store"})
    assert result.structured_content["data"]["results"][0]["key"] == "notes/wal.md", result


async def save_and_delete(client: Client[Any]) -> None:
    text = "# Otters\n\nThe otter relay has two poles.\n"
    saved = await client.call_tool("memory_save", {"title": "Otters", "content": text, "force": True})
    key = saved.structured_content["data"]["key"]
    assert text.strip() in (await client.read_resource(f"memory://{key}"))[0].text
    await client.call_tool("memory_delete", {"id": saved.structured_content["data"]["id"]})


async def errors(client: Client[Any]) -> None:
    told = ""
    try:
        await client.call_tool("memory_search", {"quary": "x"})
    except ToolError as error:
        told = str(error)
    assert "E033" in told, told
    result = await client.call_tool("memory_search", {"quary": "x"}, raise_on_error=False)
    assert result.is_error
    assert result.structured_content["error"]["code"] == "E033", result


async def resources(client: Client[Any]) -> None:
    keys = {str(one.uri) for one in await client.list_resources()}
    assert {"speckit://pipeline", "memory://notes/wal.md"} <= keys, sorted(keys)[:5]
    assert [one.uri_template for one in await client.list_resource_templates()] == ["memory://{+key}"]
    assert "WAL mode" in (await client.read_resource("memory://notes/wal.md"))[0].text


async def prompts(client: Client[Any]) -> None:
    assert {one.name for one in await client.list_prompts()} == {"handover", "remember", "why"}
    message = (await client.get_prompt("why", {"memory": "notes/wal.md"})).messages[0]
    assert "quokka" in message.content.text, message


async def completion(client: Client[Any]) -> None:
    from mcp_types import PromptReference

    found = await client.complete(
        PromptReference(type="ref/prompt", name="why"), {"name": "memory", "value": "notes/w"}
    )
    assert found.values == ["notes/wal.md"], found


async def progress(client: Client[Any]) -> None:
    told: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, _message: str | None) -> None:
        told.append((done, total))

    await client.call_tool("memory_index_scan", {"force": True}, progress_handler=note)
    assert len(told) >= 3, told
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1], told


async def together(client: Client[Any]) -> None:
    queries = [f"relay {number} bus" for number in range(20)]
    answers = await asyncio.gather(*(client.call_tool("memory_search", {"query": query}) for query in queries))
    assert all(answer.structured_content["data"]["results"] for answer in answers)


PARTS: tuple[Callable[[Client[Any]], Awaitable[None]], ...] = (
    tools, search, save_and_delete, errors, resources, prompts, completion, progress, together,
)  # fmt: skip


async def main(server: str, root: str, mode: Any) -> dict[str, str]:
    """What is wrong with each part, "" for nothing."""
    if server.startswith("http"):
        client: Client[Any] = Client(server, mode=mode)
    else:
        environment = {**os.environ, "SPECKIT_ROOT": root}
        client = Client(StdioTransport(server, ["serve"], env=environment, cwd=root, keep_alive=False), mode=mode)
    found = {}
    async with client:
        for part in PARTS:
            try:
                await part(client)
                found[part.__name__] = ""
            except Exception as error:
                found[part.__name__] = f"{type(error).__name__}: {error}"[:500]
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:4]))))
