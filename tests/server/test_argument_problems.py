"""What is said of arguments that cannot be used: their parameter, what is accepted, and what was found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_answer_cache import Ask, asking, served

WEIGHT = "'importanceWeight' must be a number from 0 to 1, not a text"


@pytest.fixture
def ask(workspace: Path) -> Iterator[Ask]:
    """Asks a server in this process."""
    with asking(served(workspace)) as [client]:
        yield client


@pytest.mark.requirement("T26")
@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("memory_search", {"limit": "ten"}, "'limit' must be a whole number from 1 to 100, not a text"),
        ("memory_search", {"limit": 2.5}, "'limit' must be a whole number from 1 to 100, not a number with a fraction"),
        ("memory_search", {"tokenBudget": [1]}, "'tokenBudget' must be a whole number from 200 on, not a list"),
        ("memory_search", {"useDecay": 1}, "'useDecay' must be true or false, not a whole number"),
        ("memory_search", {"query": True}, "'query' must be a text, not true"),
        ("memory_search", {"key": [17]}, "'key' must be an id (whole number) or a key (text), not a list"),
        ("memory_delete", {"id": {}}, "'id' must be an id (whole number) or a key (text), not an object"),
        ("memory_update", {"id": 1, "importanceWeight": "x"}, WEIGHT),
        ("memory_search", {"concepts": [["a"]]}, "'concepts.0' must be a text, not a list"),
        (
            "memory_drift_why",
            {"memoryId": 1, "relations": "caused, enabled"},
            "'relations' must be a list of texts, such as [\"caused\", \"enabled\"], not a text",
        ),
        ("checkpoint_create", {"name": "a", "metadata": 3}, "'metadata' must be an object, not a whole number"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_answered_once_with_the_form_that_is_accepted(
    ask: Ask, tool: str, arguments: dict[str, Any], message: str
) -> None:
    refused = ask(tool, **arguments)
    assert (refused["error"]["code"], refused["error"]["message"]) == ("E030", message)
    assert "errors" not in refused


def test_of_a_value_of_one_of_two_types_is_told_what_is_wrong_with_it(ask: Ask) -> None:
    refused = ask("memory_search", key="x" * 501)
    assert refused["error"]["code"] == "E032"
    assert refused["error"]["message"].startswith("'key' is too long")
    assert "errors" not in refused


def test_every_problem_of_a_call_is_named(ask: Ask) -> None:
    refused = ask("memory_update", id=[1], triggerPhrases=[1, 2], importanceWeight="x")
    names = [problem["message"].split("'")[1] for problem in refused["errors"]]
    assert names == ["id", "triggerPhrases.0", "triggerPhrases.1", "importanceWeight"]


@pytest.mark.requirement("A7")
def test_a_memory_is_read_by_the_id_that_every_answer_shows(ask: Ask) -> None:
    [row, *_] = ask("memory_search", query="rank fusion")["data"]["results"]
    by_key = ask("memory_search", key=row["key"])
    for name in (row["id"], f"{row['id']}"):
        assert ask("memory_search", key=name)["data"] == by_key["data"]
    assert ask("memory_search", key=0)["error"]["code"] == "E080"
