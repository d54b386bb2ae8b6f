"""What a caller gave in vain is named: no parameter does nothing in silence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.server.calls.unused_parameters import UnusedParameters, told_idle
from tests.server.doors import call
from tests.server.test_answer_cache import Ask, asking, served

WAL = "docs/storage/wal.md"
NEW = {"title": "T", "content": "# T\n\nA text of its own about otters.\n"}

UNNAMED = "without effect, as no session is named: turnNumber"


@pytest.fixture
def ask(workspace: Path) -> Iterator[Ask]:
    """Asks a server in this process."""
    with asking(served(workspace)) as [client]:
        yield client


@pytest.mark.requirement("T24")
@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        (
            "memory_search",
            {"key": WAL, "query": "fusion", "useDecay": True, "limit": 3},
            "without effect, as one memory is read by its key: query, limit, useDecay",
        ),
        ("memory_search", {"query": "fusion", "fromLine": 3}, "without effect, as no key is given: fromLine"),
        ("memory_match_triggers", {"prompt": "fusion", "turnNumber": 3}, UNNAMED),
        (
            "memory_match_triggers",
            {"prompt": "fusion", "session_id": "s", "include_cognitive": False},
            "without effect, as include_cognitive is false: session_id",
        ),
        ("memory_health", {"limit": 3}, "without effect, as the full report lists no aliases: limit"),
        ("memory_save", {"filePath": WAL, "title": "x"}, "without effect, as the document is saved unchanged: title"),
        (
            "memory_save",
            {"filePath": "docs/otters.md", **NEW, "folder": "elsewhere"},
            "without effect, as filePath gives the folder: folder",
        ),
        (
            "memory_save",
            {"filePath": WAL, "content": "More.", "edit": "append", "tier": "critical", "asyncEmbedding": True},
            "without effect, as a document is edited: tier, asyncEmbedding",
        ),
    ],
)  # fmt: skip
def test_what_does_nothing_beside_the_others_is_named_with_the_reason(
    ask: Ask, tool: str, arguments: dict[str, Any], hint: str
) -> None:
    answer = ask(tool, **arguments)
    assert answer["hints"][0] == hint
    assert f"Note: {hint}" in answer["text"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_search", {"key": WAL, "sessionId": "s", "tokenBudget": 500, "fromLine": 2, "anchors": []}),
        ("memory_search", {"key": WAL, "query": "", "limit": None, "mode": "auto", "enableDedup": True}),
        ("memory_search", {"query": "fusion", "fromLine": 1, "key": ""}),
        ("memory_match_triggers", {"prompt": "fusion", "session_id": "s", "turnNumber": 3}),
        ("memory_health", {"limit": 3, "reportMode": "divergent_aliases"}),
        ("memory_health", {"limit": 20}),
        ("memory_save", {**NEW, "folder": "elsewhere", "tier": "important", "triggerPhrases": ["otters"]}),
    ],
)
def test_what_counts_or_asks_for_what_is_so_anyway_is_not_named(ask: Ask, tool: str, arguments: dict[str, Any]) -> None:
    answer = ask(tool, **arguments)
    assert "error" not in answer
    assert not [hint for hint in answer["hints"] if hint.startswith("without effect")]


def test_of_many_only_their_number_is_told() -> None:
    values = {f"p{number}": number for number in range(1, 31)}
    told = told_idle(lambda _: UnusedParameters(values.keys(), "so it is"), values, dict.fromkeys(values, 0))
    assert told == ("without effect, as so it is: p1, p2, p3, p4, p5, p6 and 24 more",)
    assert told_idle(None, values, values) == told_idle(lambda _: None, values, values) == ()


def test_the_kept_answer_is_given_with_hints_of_the_call(ask: Ask) -> None:
    ask("memory_match_triggers", prompt="reciprocal rank fusion", turnNumber=3)
    again = ask("memory_match_triggers", prompt="reciprocal rank fusion", turnNumber=3)
    assert again["meta"]["cache_hit"]
    assert again["hints"][0] == UNNAMED


@pytest.mark.requirement("T3")
def test_the_console_refuses_what_it_would_not_heed(workspace: Path) -> None:
    refused = call(workspace, ["match", "rank fusion", "--turn", "3"])
    assert (refused.status, "--session" in refused.err) == (2, True)
    for empty in ("", "  \n"):
        ran = call(workspace, ["match", empty])
        assert (ran.status, ran.out) == (2, "")
        assert "E043" in ran.err
    assert call(workspace, ["match", "what of reciprocal rank fusion?", "--session", "s", "--turn", "1"]).status == 0


@pytest.mark.requirement("T3")
def test_the_console_says_what_triggered_a_memory_whose_own_phrases_do_not_stand_there(workspace: Path) -> None:
    with (
        Memory.open(workspace / "memory.db", root=workspace, create=False) as memory,
        memory.session.database.write() as txn,
    ):
        now = time.time()
        selections.learn(txn, memory.get(WAL).id, "otter", now, now + 86_400.0)
    shown = call(workspace, ["match", "an otter"]).out
    assert f"{WAL} · Write-ahead log\n    triggered by: 1 learned phrase\n    " in shown
    assert "\n\n" not in shown
