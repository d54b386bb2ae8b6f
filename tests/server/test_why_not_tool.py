"""`whyNot` of `memory_search`: what it says holds for the answer it stands in, and for calls that heed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.search_options import SearchOptions
from speckit_memory.server.calls.missing import TOOL
from speckit_memory.server.mcp_server.app import build
from speckit_memory.server.operations.search import ToolSearch
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace

NOTES = 24
QUERY = {"query": "quokka grazes", "tokenBudget": 50_000}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Notes that say less and less of the quokka, a rule of the house, and one in another folder."""
    root = tmp_path_factory.mktemp("herd")
    for folder in ("notes", "far", "rules"):
        (root / folder).mkdir()
    for place in range(NOTES):
        grazing, grass = "The quokka grazes. " * (NOTES - place), "Grass grows in the valley. " * place
        (root / "notes" / f"{place:02}.md").write_text(f"# Herd {place}\n\n{grazing}A wombat digs {place}. {grass}\n")
    (root / "far" / "island.md").write_text("# Quokka\n\nThe quokka grazes on an island.\n")
    (root / "rules" / "rule.md").write_text(
        "---\nimportance_tier: constitutional\n---\n# Rule\n\nWhoever merges runs all tests before.\n"
    )
    with Memory.open(root / "memory.db", root=root, environ={}) as opened:
        opened.index([root])
        yield opened


def call(memory: Memory, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The structured answer of `memory_search`, and its text."""

    async def work() -> tuple[dict[str, Any], str]:
        server = build(Workspace(lambda create: memory, memory.session.settings), warm_up=False, limits=ThreadLimits())
        async with Client(server) as client:
            answer = await client.call_tool("memory_search", arguments)
        [content] = answer.content
        assert isinstance(content, TextContent)
        return answer.structured_content or {}, content.text

    return anyio.run(work)


def keys(answer: dict[str, Any]) -> list[str]:
    return [row["key"] for row in answer["data"]["results"]]


def lost(memory: Memory, arguments: dict[str, Any], at: int = 0) -> str:
    """A note that an answer does not have."""
    found = keys(call(memory, arguments)[0])
    return [key for key in (f"notes/{place:02}.md" for place in range(NOTES)) if key not in found][at]


@pytest.mark.requirement("P8.change")
@pytest.mark.parametrize(
    ("arguments", "key", "name"),
    [
        ({"limit": 4, "rerank": False}, None, "limit"),
        ({"limit": 4}, None, "limit"),
        ({"limit": 20, "applyStateLimits": True}, None, "applyStateLimits"),
        ({"includeConstitutional": False}, "rules/rule.md", "includeConstitutional"),
        ({"specFolder": "far"}, "notes/00.md", "specFolder"),
    ],
)
def test_what_is_named_works_in_the_same_call(
    memory: Memory, arguments: dict[str, Any], key: str | None, name: str
) -> None:
    """It is verified with the wishes of the call, and is a parameter of the tool where one does it."""
    asked = {**QUERY, **arguments}
    key = key or lost(memory, asked)
    told, text = call(memory, {**asked, "whyNot": key})
    found = told["data"]["why_not"]["change"]
    assert found["change"]["name"] == name
    given = {
        parameter: value for parameter, value in (asked | found["change"]["parameters"]).items() if value is not None
    }
    assert keys(call(memory, given)[0]).index(key) + 1 == found["rank"]
    value = found["change"]["to"]
    assert f"brings it in: {f'{name}: ' if value is not None else f'without {name} '}" in text
    assert "--" not in found["sentence"]
    assert "Python" not in found["sentence"]


@pytest.mark.requirement("P8.change")
def test_where_the_limit_does_it_nothing_else_is_tried(memory: Memory) -> None:
    asked = {**QUERY, "limit": 4}
    told, _ = call(memory, {**asked, "whyNot": lost(memory, asked, at=6)})
    found = told["data"]["why_not"]["change"]
    assert found["tried"] == ["limit"]
    assert found["runs"] <= 2
    assert "no room" not in found["sentence"], "no row was left out for the budget"


@pytest.mark.requirement("P8.change")
def test_what_was_found_and_had_no_room_is_said_to_be_that(memory: Memory) -> None:
    asked = {"query": QUERY["query"], "limit": 20}
    whole = keys(call(memory, {**asked, "tokenBudget": 50_000})[0])
    cut, text = call(memory, {**asked, "tokenBudget": 600, "whyNot": whole[-1]})
    assert whole[-1] not in keys(cut)
    reason = cut["data"]["why_not"]["reason"]
    assert reason.startswith(f"'{whole[-1]}' was found as result {len(whole)}, left out to stay within 600 tokens; ")
    assert reason in text
    assert cut["data"]["why_not"]["change"] is None
    assert cut["meta"]["token_count"] <= 600
    shown, _ = call(memory, {**asked, "tokenBudget": 600, "whyNot": keys(cut)[0]})
    assert shown["data"]["why_not"]["reason"] == f"'{keys(cut)[0]}' is result 1 of {len(whole)}."


@pytest.mark.requirement("P8.change")
def test_who_is_told_of_a_limit_is_told_of_the_room_too(memory: Memory) -> None:
    asked = {"query": QUERY["query"], "limit": 12}
    key = lost(memory, {**asked, "tokenBudget": 50_000})
    told, _ = call(memory, {**asked, "tokenBudget": 600, "whyNot": key})
    found = told["data"]["why_not"]["change"]
    assert found["rank"] > len(keys(told))
    assert found["sentence"].endswith("600 tokens may have no room for it: raise tokenBudget too, or read it with key.")


@pytest.mark.requirement("T24")
@pytest.mark.parametrize("limit", [1, 3, 20])
@pytest.mark.parametrize("budget", [200, 230, 300])
def test_no_answer_is_over_its_budget_for_the_sake_of_a_reason(memory: Memory, limit: int, budget: int) -> None:
    """The line of the text is cut to what the rows leave it; the data have it whole."""
    asked = {"query": QUERY["query"], "limit": limit, "tokenBudget": budget}
    plain, _ = call(memory, asked)
    for key in (lost(memory, {**asked, "tokenBudget": 50_000}), keys(plain)[0], "far/island.md"):
        told, _ = call(memory, {**asked, "whyNot": key})
        assert told["meta"]["token_count"] <= max(budget, plain["meta"]["token_count"])
        why = told["data"]["why_not"]
        assert why["reason"].endswith(".")
        assert why["change"] is None or why["change"]["sentence"].endswith(".")


@pytest.mark.requirement("P8.change")
def test_what_only_the_user_can_change_is_said_to_be_that(memory: Memory) -> None:
    similar = {
        "pipeline": "similar", "extends": "none",
        "candidates": {"channels": [{"use": "bm25", "limit": 3}]}, "fusion": [{"use": "single", "scale": "bm25"}],
    }  # fmt: skip
    with memory.using(similar) as few:
        told, text = call(few, {**QUERY, "whyNot": lost(few, QUERY)})
    found = told["data"]["why_not"]["change"]
    assert (found["change"]["kind"], found["change"]["name"]) == ("value", "bm25.limit")
    assert found["change"]["parameters"] == {}
    assert "for the user to write into .speckit/pipeline.yaml" in text
    assert "quick" not in text


@pytest.mark.requirement("P8.change")
def test_the_deadline_is_that_of_the_whole_call(memory: Memory) -> None:
    """A search that has used it up leaves nothing to be tried."""
    asked = {**QUERY, "limit": 4}
    key = lost(memory, asked)
    told, text = call(memory, {**asked, "deadlineMs": 1e-3, "whyNot": key})
    found = told["data"]["why_not"]["change"]
    assert (found["runs"], found["change"], found["complete"]) == (0, None, False)
    assert "No time was left to try what would bring it in. Raise deadlineMs." in text
    unbound, _ = call(memory, {**asked, "deadlineMs": 0, "whyNot": key})
    assert unbound["data"]["why_not"]["change"]["change"]["name"] == "limit"


def test_an_id_that_there_is_not_is_refused_even_where_it_is_nothing(memory: Memory) -> None:
    for name in (0, 10**6):
        refused, _ = call(memory, {**QUERY, "whyNot": name})
        assert refused["error"]["code"] == "E080"
    assert "why_not" not in call(memory, {**QUERY, "whyNot": ""})[0]["data"]


def test_every_wish_has_the_name_of_a_parameter(memory: Memory) -> None:
    async def work() -> set[str]:
        server = build(Workspace(lambda create: memory, memory.session.settings), warm_up=False, limits=ThreadLimits())
        async with Client(server) as client:
            [schema] = [
                tool.input_schema["properties"]
                for tool in (await client.list_tools()).tools
                if tool.name == "memory_search"
            ]
        return set(schema["mode"]["enum"])

    assert set(TOOL.modes) == anyio.run(work)
    assert set(SearchOptions.__dataclass_fields__) <= set(ToolSearch.model_fields)


@pytest.mark.requirement("P8.change")
def test_what_a_wish_of_the_call_prevents_is_not_promised(memory: Memory) -> None:
    """In the other folder too so many rows of each state are wanted."""
    asked = {**QUERY, "specFolder": "far", "applyStateLimits": True, "limit": 50}
    told, _ = call(memory, {**asked, "whyNot": "notes/20.md"})
    found = told["data"]["why_not"]["change"]
    assert "notes/20.md" not in keys(call(memory, {**asked, "specFolder": ""})[0])
    assert found["change"] is None
    assert found["nearest"]["name"] == "specFolder"


@pytest.mark.requirement("P8.change")
def test_no_value_of_a_pipeline_is_named_that_a_wish_overrules(memory: Memory) -> None:
    small = {"pipeline": "small", "extends": "bm25", "annotate": {"add": [{"use": "state_filter"}]}}
    wanted = SearchOptions(state_limits=True)
    with memory.using(small) as limited:
        result = limited.search("quokka grazes", adjust=wanted)
        assert "notes/05.md" not in {row.key for row in result.results}
        told = limited.explain.smallest_change(result, "notes/05.md")
    assert told is not None
    assert told.change is not None
    assert {"state_limits", "state_filter.limits.HOT"} <= set(told.tried)
    if told.change.kind == "value":
        with memory.using(small, {told.change.name: str(told.change.after)}) as other:
            again = other.search("quokka grazes", adjust=wanted)
        assert [row.key for row in again.results].index("notes/05.md") + 1 == told.rank


def test_python_names_what_a_search_wanted(memory: Memory) -> None:
    wanted = SearchOptions(constitutional=False)
    told = memory.explain.smallest_change(memory.search("quokka grazes", adjust=wanted), "rules/rule.md")
    assert told is not None
    assert "adjust without constitutional in Python (now False)" in told.sentence
    assert told.change is not None
    assert told.change.as_json()["kind"] == "wish"
