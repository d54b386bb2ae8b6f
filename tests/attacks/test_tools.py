"""Arguments that nobody means, for every parameter of every tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer, call_of
from tally import Tally

from speckit_memory.server.replies.envelope import FIELDS
from tests.server.doors import call

pytestmark = pytest.mark.usefixtures("processes")

LONG = 100_000
MOST = 20_000
"""Characters of any answer to arguments like these, as JSON."""
DEFECTS = ("E199", "E040", "E020", "E021", "E024")
TEXTS = [
    "", " ", "\n\t", "\0", "a\0b", "\0" * 150, "\ud800", "x\udfff y", "\u202eesrever", "\x1b[31mred", "\ufeff",
    "x" * LONG, "fusion " * 1400, "'", '"', "%", "_", "*", "../" * 40, "/", "~", "a/" * 90, "\U0001f642" * 190, "C:\\x",
    "{", "[", "[[", "[" * LONG, "null", "true", "1", "1e999", "NaN", "9" * 5000, "-1", "${HOME}", "%s%n", "a" * 255,
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400, 0.5, 1e308, -0.0, 5e-324,
    float("nan"), float("inf"), -float("inf"), True, False,
]  # fmt: skip
NESTED: list[Any] = [
    None, [], {}, [[]], [None], [""], ["\0"], ["\ud800"], ["x" * LONG], ["x"] * 10_000, [[[[[]]]]], {"a": 1},
    [1, 2], [True], ["a", "b"], ["\0", "b"], ["x" * 1900, "y" * 1900], ["a"] * 20, {"x" * LONG: {}}, ["[" * LONG] * 2,
]  # fmt: skip
BAD = [*TEXTS, *NUMBERS, *NESTED]
TASK = {"specFolder": "specs", "taskId": "t", "knowledgeScore": 1, "uncertaintyScore": 2, "contextScore": 3}
USUAL: dict[str, dict[str, Any]] = {
    "memory_context": {"input": "fusion"},
    "memory_search": {"query": "fusion"},
    "memory_save": {"filePath": "docs/fusion.md", "dryRun": True},
    "memory_validate": {"id": 1, "wasUseful": True},
    "memory_index_scan": {},
    "memory_list": {},
    "memory_stats": {},
    "memory_health": {},
    "memory_drift_why": {"memoryId": 1},
    "memory_causal_link": {"sourceId": 1, "targetId": 2, "relation": "supports"},
    "memory_causal_stats": {},
    "memory_causal_unlink": {"edgeId": 1},
    "task_preflight": TASK,
    "task_postflight": TASK,
    "memory_get_learning_history": {"specFolder": "specs"},
    "checkpoint_create": {"name": "kept"},
    "checkpoint_list": {},
    "checkpoint_restore": {"name": "kept"},
    "checkpoint_delete": {"name": "kept", "confirmName": "kept"},
    "memory_update": {"id": 2, "importanceWeight": 0.5},
    "memory_match_triggers": {"prompt": "fusion"},
    "memory_delete": {"id": "docs/aside.md", "dryRun": True},
    "memory_bulk_delete": {"tier": "temporary", "dryRun": True},
}
ROOM: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "checkpoint_create": [("checkpoint_delete", USUAL["checkpoint_delete"])],
    "memory_causal_unlink": [("memory_causal_link", USUAL["memory_causal_link"])],
    "memory_delete": [("memory_save", {"filePath": "docs/aside.md", "content": "# Aside\n\nTo be deleted.\n"})],
}
"""What makes room for a usual call, where one with a strange value was taken before."""


@pytest.fixture(scope="module")
def parameters(server: RawServer) -> dict[str, list[str]]:
    """The names of all parameters of all tools, as the server lists them."""
    server.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
    tools = server.answer("list")["result"]["tools"]
    assert {tool["name"] for tool in tools} == set(USUAL)
    return {tool["name"]: list(tool["inputSchema"].get("properties", {})) for tool in tools}


@pytest.mark.parametrize("tool", USUAL)
def test_every_value_of_every_parameter_gets_a_short_answer_that_is_no_defect(
    server: RawServer, parameters: dict[str, list[str]], tally: Tally, tool: str
) -> None:
    for name in parameters[tool]:
        for number, value in enumerate(BAD):
            server.send(call_of(f"{name} {number}", tool, {**USUAL[tool], name: value}))
            answer = server.answer(f"{name} {number}")
            assert len(json.dumps(answer)) < MOST, (name, repr(value)[:80])
            structured = answer["result"]["structuredContent"]
            assert set(FIELDS) <= set(structured), (name, repr(value)[:80])
            error = structured.get("error", {"code": "", "message": ""})
            assert error["code"] not in DEFECTS, (name, repr(value)[:80], error)
            tally.tried()
    tally.tried()
    usual = USUAL[tool]
    for number, needed in enumerate(ROOM.get(tool, ())):
        made = server.call(f"room {number}", *needed)
        if tool == "memory_causal_unlink":
            usual = {"edgeId": made["structuredContent"]["data"]["link"]["id"]}
    assert not server.call("usual", tool, usual).get("isError")


@pytest.mark.parametrize("tool", USUAL)
def test_the_names_and_the_number_of_unknown_arguments_lengthen_no_answer(
    server: RawServer, tally: Tally, tool: str
) -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {f"n{number}": number for number in range(30_000)},
        {"x" * 2_000_000: 1},
        {"y" * LONG + str(end): [] for end in range(40)},
        {"\ud800\0": 1},
    )
    for unknown in kinds:
        result = server.call("many", tool, USUAL[tool] | unknown)
        assert result["isError"]
        assert len(json.dumps(result)) < MOST
        text = result["content"][0]["text"]
        assert (f"{tool} does not have {len(unknown) - 19:,} more of the parameters given" in text) is (
            len(unknown) > 20
        )
        tally.tried(len(unknown))


@pytest.mark.parametrize(
    "name", ["", "\0", "\ud800", "x" * 2_000_000, "../memory_list", "memory_list\n", "\x1b]0;x\x07"]
)
def test_an_unknown_tool_is_named_in_short(server: RawServer, tally: Tally, name: str) -> None:
    result = server.call("unknown", name, {"a": "b" * LONG})
    assert result["structuredContent"]["error"]["code"] == "E033"
    assert len(json.dumps(result)) < 3000
    tally.tried()


@pytest.mark.parametrize("value", ["9" * 400, "-1", str(2**63), "9" * 5000, "", " ", "0x10", "1e999", "nan", "\u0663"])
@pytest.mark.parametrize("option", ["--limit", "--deadline-ms"])
def test_numbers_that_nobody_means_are_refused_by_commands_or_taken(
    indexed: Path, tally: Tally, option: str, value: str
) -> None:
    ran = call(indexed, ["search", "fusion", option, value])
    assert ran.status in (0, 2), ran.err[:500]
    assert "E199" not in ran.err
    assert len(ran.err) < MOST
    tally.tried()


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "x" * LONG],
        ["search", "fusion", "--folder", "y" * LONG],
        ["search", "fusion", "--session", "y" * LONG],
        ["search", "fusion", "--why-not", "y" * LONG],
        ["search", "fusion", "--why-not", "9" * 5000],
        ["search", "fusion", "--mode", "m" * LONG],
        ["search", "fusion", "--db", "d" * LONG],
        ["search", "fusion", "--pipeline", "p" * LONG],
        ["search", "fusion", "--set", "s" * LONG],
        ["search", "fusion", "--set", "z_score." + "s" * LONG + "=1"],
        ["search", "fusion", "--" + "o" * LONG],
        ["index", "i" * LONG],
        ["index", "a/" * 40_000],
        ["pipeline", "check", "c" * LONG],
        ["pipeline", "diff", "c" * LONG, "d" * LONG],
        ["eval", "run", "--dataset", "e" * LONG, "--pipeline", "bm25"],
        ["k" * LONG],
        ["serve", "--token-file", "t" * LONG, "--transport", "http"],
        ["serve", "--host", "h" * LONG, "--transport", "http", "--port", "0"],
        ["serve", "--port", "9" * 5000],
    ],
    ids=lambda arguments: " ".join(argument[:12] for argument in arguments),
)
def test_long_arguments_of_commands_are_repeated_in_short(indexed: Path, tally: Tally, arguments: list[str]) -> None:
    ran = call(indexed, arguments)
    assert ran.status in (0, 1, 2), ran.err[:2000]
    assert "E199" not in ran.err
    assert len(ran.err + ran.out) < MOST, ran.err[:300]
    tally.tried()
