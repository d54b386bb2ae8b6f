"""Profiles: how many tools an agent is offered, what their definitions cost it, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from files import write_file
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.server.mcp_server.profiles import core_tools
from tests.server.doors import call, with_client
from tests.server.test_mcp_http import serving
from tests.server.test_mcp_stdio import TOOLS, calls

Listed = list[dict[str, Any]]
FOR_MODELS = ("name", "description", "inputSchema")
"""What a client hands to its model of a tool's definition."""


async def listed(client: Client) -> Listed:
    found = await client.list_tools()
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in found.tools]


def tokens(tools: Listed) -> int:
    """By the bundled tokeniser, which counts more than those of large models do."""
    return StaticEmbedder().count_tokens([json.dumps(tools, ensure_ascii=False, separators=(",", ":"))])[0]


@pytest.mark.requirement("T24")
def test_core_is_at_most_seven_tools_and_fifteen_hundred_tokens_and_says_where_the_others_are(indexed: Path) -> None:
    async def work(client: Client) -> tuple[Listed, Any, Any]:
        answered = await client.call_tool("memory_search", {"query": "computeMPAB", "limit": 1})
        refused = await client.call_tool("memory_stats", {})
        return await listed(client), answered, refused

    tools, answered, refused = with_client(indexed, work, SPECKIT_PROFILE="core")
    assert [tool["name"] for tool in tools] == list(core_tools())
    assert len(core_tools()) <= 7
    assert tokens(tools) <= 1500
    assert answered.structured_content["data"]["results"][0]["key"] == "docs/storage/wal.md"
    assert refused.is_error
    error = refused.structured_content["error"]
    assert error["code"] == "E035"
    assert "'memory_stats' is not in the profile 'core'" in error["message"]
    assert "profile 'full' has it" in error["message"]


@pytest.mark.requirement("T24")
def test_what_models_are_given_of_all_tools_is_at_most_four_thousand_tokens(indexed: Path) -> None:
    tools = with_client(indexed, listed)
    assert sorted(tool["name"] for tool in tools) == sorted(TOOLS)
    assert set(core_tools()) < set(TOOLS)
    assert tokens([{name: tool[name] for name in FOR_MODELS} for tool in tools]) <= 4000


@pytest.mark.usefixtures("processes")
def test_over_http_the_option_goes_before_the_file_of_the_workspace(workspace: Path) -> None:
    write_file(workspace / ".speckit" / "config.yaml", "profile: core\n")

    def names(*arguments: str) -> list[str]:
        async def session(url: str) -> list[str]:
            async with (
                httpx2.AsyncClient(timeout=60) as http,
                Client(streamable_http_client(url, http_client=http)) as c,
            ):
                return [tool["name"] for tool in await listed(c)]

        with serving(workspace, *arguments) as url:
            return anyio.run(session, url)

    assert names() == list(core_tools())
    assert sorted(names("--profile", "full")) == sorted(TOOLS)


def test_what_cannot_be_a_profile_is_refused_before_anything_is_served(workspace: Path) -> None:
    write_file(workspace / ".speckit" / "config.yaml", "profile: tiny\n")

    ran = call(workspace, ["serve"])
    assert (ran.status, ran.out) == (2, "")
    assert "'profile' must be" in ran.err
    (workspace / ".speckit" / "config.yaml").unlink()
    assert "SPECKIT_PROFILE is 'tiny'" in call(workspace, ["serve"], {"SPECKIT_PROFILE": "tiny"}).err


@pytest.mark.requirement("T24")
def test_the_budget_of_an_answer_is_the_callers_to_choose(indexed: Path) -> None:
    asked = {"query": "quokka cache of the store with rank fusion and backups"}
    small, usual, key, context, wrong = calls(
        indexed,
        ("memory_search", {**asked, "tokenBudget": 200}),
        ("memory_search", asked),
        ("memory_search", {"key": "docs/long.md", "tokenBudget": 300}),
        ("memory_context", {"input": asked["query"], "tokenBudget": 250}),
        ("memory_search", {**asked, "tokenBudget": 20}),
    )
    assert [one["meta"]["token_budget"] for one in (small, usual, key, context)] == [200, 1500, 300, 250]
    assert small["data"]["count"] < usual["data"]["count"]
    assert key["summary"] == "docs/long.md, read in part"
    assert wrong["error"]["code"] == "E032"
