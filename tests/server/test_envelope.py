from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.errors import SpeckitError
from server.envelope import Reply, failure, success, tokens

ALPHABETS = st.sampled_from(["x", 'say "quoted"\n', "全文検索"])
ROWS = st.lists(st.tuples(st.integers(0, 3000), ALPHABETS), max_size=40).map(
    lambda rows: [{"id": n, "memory_text": (text * length)[:length]} for n, (length, text) in enumerate(rows)]
)


def answer(rows: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    result = success(Reply("n found", {"results": rows}, rows="results"), "memory_search", budget, 1.23)
    assert result.structured_content is not None
    return dict(result.structured_content)


def test_an_answer_within_its_budget_is_left_alone() -> None:
    rows = [{"id": 1, "memory_text": "short"}, {"id": 2, "memory_text": "also short"}]
    document = answer(rows, 1500)
    assert document == {
        "summary": "n found",
        "data": {"count": 2, "results": rows},
        "hints": [],
        "meta": {
            "tool": "memory_search",
            "token_count": document["meta"]["token_count"],
            "token_budget": 1500,
            "latency_ms": 1.2,
            "cache_hit": False,
            "degraded": [],
        },
    }


@pytest.mark.requirement("T24.kept")
@given(rows=ROWS, budget=st.integers(300, 2000))
def test_an_answer_keeps_its_budget_and_says_what_it_left_out(rows: list[dict[str, Any]], budget: int) -> None:
    document = answer(rows, budget)
    shown = document["data"]["results"]
    assert [row["id"] for row in shown] == [row["id"] for row in rows[: len(shown)]]
    assert document["data"]["count"] == len(shown)
    cut = f"; {len(shown)} of {len(rows)} results shown" if len(shown) < len(rows) else ""
    assert document["summary"] == f"n found{cut}"
    assert bool(shown) == bool(rows)
    if len(shown) != 1:
        assert tokens(json.dumps(document, ensure_ascii=False, separators=(",", ":"))) <= budget
    if len(shown) < len(rows):
        assert (
            f"{len(rows) - len(shown)} of {len(rows)} rows were left out to stay within {budget} tokens"
            in document["hints"]
        )


@pytest.mark.requirement("T24")
def test_texts_are_cut_before_rows_are_dropped() -> None:
    document = answer([{"id": n, "memory_text": "word " * 200} for n in range(5)], 900)
    assert [len(row["memory_text"]) for row in document["data"]["results"]] == [501] * 5
    assert document["hints"] == ["texts were cut to 500 characters to stay within 900 tokens"]


@pytest.mark.requirement("T24")
def test_the_last_text_is_cut_to_what_fits() -> None:
    document = answer([{"id": 1, "memory_text": "x" * 5000}], 120)
    assert tokens(json.dumps(document, separators=(",", ":"), ensure_ascii=False)) <= 120


def test_a_hint_may_depend_on_the_rows_that_are_shown() -> None:
    reply = Reply(
        "", {"rows": [{"memory_text": "x" * 400} for _ in range(9)]}, rows="rows", hint_of_count=lambda n: f"next={n}"
    )
    document = success(reply, "memory_list", 500, 0).structured_content
    assert document is not None
    assert f"next={len(document['data']['rows'])}" in document["hints"]


def test_text_and_structure_say_the_same() -> None:
    result = success(Reply("ok", {"a": "ü"}), "memory_stats", 800, 0)
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]  # the only block is text


@pytest.mark.requirement("T26")
def test_a_failure_is_the_error_object() -> None:
    result = failure(SpeckitError("E043", "the query is empty"))
    assert result.is_error
    assert result.structured_content == SpeckitError("E043", "the query is empty").as_json()
