"""Names and values that mean the same elsewhere: every error names ours, and nobody has to try again twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.server.console.fitting_actions import COMMAND
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

WORDS: list[tuple[str, dict[str, Any], str]] = [
    ("memory_save", {"text": "x"}, "did you mean 'content'?"),
    ("memory_save", {"body": "x"}, "did you mean 'content'?"),
    ("memory_save", {"content": "x", "tags": ["y"]}, "did you mean 'triggerPhrases'?"),
    ("memory_save", {"content": "x", "name": "y"}, "did you mean 'title'?"),
    ("memory_save", {"content": "x", "file_name": "y"}, "did you mean 'filePath'?"),
    ("memory_save", {"content": "x", "importance": "high"}, "did you mean 'tier'?"),
    ("memory_save", {"content": "x", "tier": "high"}, "did you mean 'important'?"),
    ("memory_search", {"q": "x"}, "did you mean 'query'?"),
    ("memory_search", {"query": "x", "top_k": 3}, "did you mean 'limit'?"),
    ("memory_search", {"query": "x", "project": "y"}, "did you mean 'specFolder'?"),
    ("memory_search", {"id": 1}, "did you mean 'key'?"),
    ("memory_context", {"query": "x"}, "did you mean 'input'?"),
    ("memory_match_triggers", {"text": "x"}, "did you mean 'prompt'?"),
    ("memory_update", {"key": "x", "importanceTier": "medium"}, "did you mean 'id'?"),
    ("memory_validate", {"id": 1, "helpful": True}, "did you mean 'wasUseful'?"),
    ("memory_causal_link", {"from": 1, "to": 2, "relation": "caused"}, "did you mean 'sourceId'?"),
    ("memory_causal_link", {"from": 1, "to": 2, "relation": "caused"}, "did you mean 'targetId'?"),
    ("memory_causal_link", {"sourceId": 1, "targetId": 2, "relation": "replaces"}, "did you mean 'supersedes'?"),
    ("memory_get", {"key": "x"}, "did you mean 'memory_search' with 'key'?"),
    ("getMemory", {}, "did you mean 'memory_search' with 'key'?"),
    ("memory_recall", {}, "did you mean 'memory_search'?"),
    ("remember", {}, "did you mean 'memory_save' with 'content'?"),
    ("memory_forget", {}, "did you mean 'memory_delete'?"),
    ("mcp__speckit-memory__memory_search", {}, "did you mean 'memory_search'?"),
    ("memory_serch", {}, "did you mean 'memory_search'?"),
    ("checkpoint_restor", {}, "did you mean 'checkpoint_restore'?"),
]


@pytest.mark.requirement("T26.synonyms")
def test_a_tool_is_told_the_name_that_another_word_means_here(indexed: Path) -> None:
    answers = calls(indexed, *((tool, arguments) for tool, arguments, _ in WORDS))
    for (tool, arguments, offer), answer in zip(WORDS, answers, strict=True):
        problems = answer.get("errors", [answer["error"]])
        assert offer in "\n".join(problem["message"] for problem in problems), (tool, arguments, problems)


@pytest.mark.requirement("T26.synonyms")
@pytest.mark.parametrize(
    ("arguments", "offer"),
    [
        (["save", "--text", "x"], "did you mean '--content'?"),
        (["save", "--content", "x", "--tier", "high"], "did you mean 'important'?"),
        (["search", "x", "--top-k", "3"], "did you mean '--limit'?"),
        (["search", "--query", "x"], "QUERY has none: `speckit-memory search QUERY`"),
        (["search", "x", "--mode", "thorough"], "did you mean 'deep'?"),
        (["links", "add", "a", "replaces", "b"], "; did you mean 'supersedes'?"),
        (["find", "x"], "did you mean 'search'?"),
        (["get", "x"], "did you mean 'show'?"),
        (["learned", "ls"], "did you mean 'list'?"),
    ],
)
def test_a_command_is_told_the_name_of_a_word_used_elsewhere(workspace: Path, arguments: list[str], offer: str) -> None:
    assert offer in call(workspace, arguments).ended(2).err


@pytest.mark.requirement("T26.synonyms")
def test_every_tool_that_takes_a_key_names_the_nearest_to_a_wrong_one(indexed: Path) -> None:
    wrong = "docs/fusio.md"
    answers = calls(
        indexed,
        ("memory_search", {"key": wrong}),
        ("memory_search", {"query": "rank", "whyNot": wrong}),
        ("memory_update", {"id": wrong, "title": "x"}),
        ("memory_validate", {"id": wrong, "wasUseful": True}),
        ("memory_delete", {"id": wrong}),
        ("memory_drift_why", {"memoryId": wrong}),
        ("memory_causal_link", {"sourceId": wrong, "targetId": "docs/tone.md", "relation": "caused"}),
        ("memory_causal_link", {"sourceId": "docs/tone.md", "targetId": wrong, "relation": "caused"}),
    )
    for answer in answers:
        assert answer["error"]["message"].endswith(f"'{wrong}'; did you mean 'docs/fusion.md'?")


@pytest.mark.requirement("T26.synonyms")
def test_over_mcp_nobody_is_sent_to_a_command_line_of_their_own(workspace: Path) -> None:
    def advice(answer: dict[str, Any]) -> list[str]:
        problems = answer.get("errors", [answer["error"]] if "error" in answer else [])
        told = [text for problem in problems for text in (problem["hint"], *problem["actions"])]
        checks = [check.get("hint", "") for check in answer["data"].get("checks", ())]
        return [*answer["hints"], *told, *checks]

    (workspace / ".speckit").mkdir(exist_ok=True)
    empty = calls(
        workspace,
        ("memory_search", {"query": "rank"}),
        ("memory_index_scan", {}),
        ("memory_search", {"query": "rank", "key": "docs/nope-at-all.md"}),
        ("memory_bulk_delete", {"tier": "normal"}),
        ("memory_health", {}),
        ("checkpoint_restore", {"name": "none"}),
        ("memory_causal_unlink", {"edgeId": 7}),
    )
    (workspace / ".speckit" / "pipeline.yaml").write_text("rerank: [mmr]\n")
    broken = calls(workspace, ("memory_search", {"query": "rank"}), ("memory_health", {}))
    for answer in (*empty, *broken):
        for text in advice(answer):
            if "--" in text or COMMAND.search(text):
                assert "user" in text, text
