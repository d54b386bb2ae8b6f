"""What every error object says beside its words, over MCP and with `--json`: how bad it is, whether to try again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from raw_server import call_of, raw_server

from speckit_memory.memory.store.file.connection import Database
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls


def told(error: dict[str, Any]) -> tuple[str, str, bool]:
    return error["code"], error["severity"], error["retryable"]


@pytest.mark.requirement("T26.again", "T26.object")
@pytest.mark.usefixtures("processes")
def test_what_may_succeed_later_says_so_at_both_doors(workspace: Path) -> None:
    with raw_server(workspace, "--no-warm-up") as server:
        server.start()
        assert not server.call(1, "memory_stats")["isError"]
        with Database.open(workspace / "memory.db") as other, other.write():
            server.send(call_of(2, "memory_validate", {"id": 1, "wasUseful": True}))
            ran = call(workspace, ["links", "add", "docs/tone.md", "supports", "docs/fusion.md", "--json"])
            refused = server.answer(2)["result"]
        later = server.call(3, "memory_validate", {"id": 1, "wasUseful": True})
        assert server.close() == 0

    assert refused["isError"]
    assert told(refused["structuredContent"]["error"]) == told(ran.json["error"]) == ("E022", "medium", True)
    assert ran.status == 1
    assert not later["isError"]


@pytest.mark.requirement("T26.again", "T26.object")
def test_what_has_to_be_changed_first_says_so_at_both_doors(workspace: Path) -> None:
    absent, wrong, unknown = calls(
        workspace,
        ("memory_validate", {"id": 999, "wasUseful": True}),
        ("memory_search", {"limit": 0, "colour": "blue"}),
        ("memory_serch", {}),
    )
    ran = call(workspace, ["show", "docs/absent.md", "--json"])

    assert told(absent["error"]) == told(ran.json["error"]) == ("E080", "low", False)
    assert [told(each) for each in wrong["errors"]] == [("E032", "low", False), ("E033", "low", False)]
    assert told(unknown["error"]) == ("E033", "low", False)
    for answer, tool in ((absent, "memory_validate"), (wrong, "memory_search"), (unknown, "memory_serch")):
        assert answer["meta"].keys() == {"tool", "latency_ms"}
        assert answer["meta"]["tool"] == tool
        assert answer["meta"]["latency_ms"] >= 0


@pytest.mark.requirement("T26")
def test_next_steps_fit_the_command_line_and_the_tools_alike(workspace: Path) -> None:
    [taken] = calls(workspace, ("memory_save", {"filePath": "docs/fusion.md", "content": "Another text."}))
    ran = call(workspace, ["save", "docs/fusion.md", "--content", "Another text.", "--json"])

    assert taken["error"] == ran.json["error"]
    assert taken["error"]["actions"] == [
        "append to it, or replace a section of it", "choose another name, or give a folder",
    ]  # fmt: skip
