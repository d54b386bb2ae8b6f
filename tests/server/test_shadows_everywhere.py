"""Variants beside what is served, through every door: pairs are noted, and answers are what they are without them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import RecordedPair
from tests.server.doors import call, with_client
from tests.server.test_mcp_http import search, serving

FLAG = "SPECKIT_RSF_FUSION"
QUERIES = [f"{word} {number}" for number in range(10) for word in ("why", "rank fusion", "gateway", "retries", "store")]


def pairs(root: Path) -> list[RecordedPair]:
    [file] = root.rglob("*.evaluation.db")
    with EvaluationDatabase.open(file, create=False) as database:
        return database.pairs()


def in_shadow(root: Path) -> None:
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "flags.yaml").write_text(f"flags:\n  {FLAG}: {{state: shadow}}\n")


def asked(root: Path) -> list[Any]:
    """What fifty queries are answered over MCP, without ids of requests and times."""

    async def work(client: Client) -> list[Any]:
        answers = []
        for query in QUERIES:
            result = await client.call_tool("memory_search", {"query": query, "deadlineMs": 0})
            document = result.structured_content
            assert isinstance(document, dict)
            answers.append((document["data"], document["hints"], document["summary"]))
        return answers

    return with_client(root, work)


@pytest.mark.requirement("P4.order")
@pytest.mark.usefixtures("processes")
def test_a_flag_in_shadow_makes_a_pair_of_each_query_and_changes_no_answer(workspace: Path, tmp_path: Path) -> None:
    plain = Path(shutil.copytree(workspace, tmp_path / "plain"))
    in_shadow(workspace)

    answers = [asked(plain), asked(workspace)]
    call(workspace, ["shadow", "report"]).ok()

    found = pairs(workspace)
    assert answers[0] == answers[1]
    assert len(found) == len(QUERIES)
    assert {(pair.variant.flag, pair.variant.mode, pair.variant.answer.failure) for pair in found} == {
        (FLAG, "shadow", "")
    }
    assert all(len(pair.query.id) == 16 for pair in found)


@pytest.mark.requirement("P4.order")
@pytest.mark.usefixtures("processes")
def test_a_server_over_http_that_a_signal_ends_loses_nothing(workspace: Path, tmp_path: Path) -> None:
    plain = Path(shutil.copytree(workspace, tmp_path / "plain"))  # whose uses are written when the server ends
    in_shadow(workspace)
    answers = []
    for root in (plain, workspace):
        with serving(root) as url:
            answers.append([search(url)["data"] for _ in range(3)])

    call(workspace, ["shadow", "report"]).ok()

    assert answers[0] == answers[1]
    assert [pair.variant.flag for pair in pairs(workspace)] == [FLAG] * 3


@pytest.mark.requirement("P4.order")
def test_what_the_command_line_was_asked_is_replayed_by_the_report(workspace: Path) -> None:
    in_shadow(workspace)

    ran = call(workspace, ["search", "rank", "fusion", "--json"])
    assert pairs(workspace) == []
    [compared] = call(workspace, ["shadow", "report", "--json"]).ok().json["comparisons"]
    refused = call(workspace, ["flags", "promote", FLAG, "--evidence", compared["id"]])

    assert "has 1" in refused.err
    [pair] = pairs(workspace)
    assert pair.query.id == ran.json["query_id"]
    assert (pair.variant.flag, pair.basis) == (FLAG, "served")


def test_a_search_shows_another_pipeline_beside_its_own(workspace: Path) -> None:
    alone = call(workspace, ["search", "rank", "fusion", "--json"]).json
    both = call(workspace, ["search", "rank", "fusion", "--json", "--shadow", "bm25", "--shadow", "default"]).json

    assert [row["id"] for row in both["results"]] == [row["id"] for row in alone["results"]]
    other, same = both["shadows"]
    assert (other["name"], other["failure"], same["parted_at"]) == ("bm25", "", "")
    assert same["agreement"]["overlap_10"] == same["agreement"]["kendall_tau_b"] == 1.0
    assert not same["agreement"]["ordering_difference"]
    assert [row["id"] for row in same["results"]] == [row["id"] for row in alone["results"]]
    assert {move["id"] for move in other["agreement"]["moves"]} >= {row["id"] for row in other["results"]}


def test_both_lists_are_printed_and_what_moved_is_marked(workspace: Path) -> None:
    out = call(workspace, ["search", "rank", "fusion", "--shadow", "bm25"]).out

    assert "Compared with: bm25" in out
    assert "They differ from the step" in out
    assert "ms alone" in out


def test_a_pipeline_that_cannot_be_read_is_refused_before_anything_is_searched(workspace: Path) -> None:
    ran = call(workspace, ["search", "rank", "--json", "--shadow", "none-such"])

    assert ran.status != 0
    assert "none-such" in json.dumps(ran.json)


def test_the_report_on_health_tells_of_variants(workspace: Path) -> None:
    in_shadow(workspace)
    call(workspace, ["search", "rank", "fusion"])

    checks = {check["name"]: check for check in call(workspace, ["doctor", "--json"]).json["checks"]}

    assert checks["shadows"]["detail"].startswith("'rsf_fusion' in shadow, by replay, 0 seen, 1 waiting")


@pytest.mark.parametrize(
    ("limit", "said"), [(1, "row in common of 1"), (2, "of the first 2 in common"), (3, "of the first 3 in common")]
)
def test_what_is_said_of_the_difference_is_about_the_rows_that_are_shown(
    workspace: Path, limit: int, said: str
) -> None:
    (workspace / "words.yaml").write_text(
        "extends: none\ncandidates: {channels: [{use: bm25, fields: {triggers: 0}}]}\n"
        "fusion: [{use: single, scale: bm25}]\n"
    )
    (workspace / "triggers.yaml").write_text(
        "extends: none\ncandidates: {channels: [{use: trigger}]}\nfusion: [{use: single, scale: unit}]\n"
    )
    asked = ["search", "copy with the online backup never with cp; the store runs SQLite; reciprocal rank fusion"]
    asked += ["--pipeline", "words.yaml", "--shadow", "triggers.yaml", "--limit", str(limit)]

    printed = " ".join(call(workspace, asked).out.split())
    document = call(workspace, [*asked, "--json"]).json

    (shadow,) = document["shadows"]
    rows = [{row["id"] for row in found["results"]} for found in (document, shadow)]
    assert shadow["agreement"]["compared"] == max(map(len, rows)) == limit
    assert shadow["agreement"]["ordering_difference"]
    assert f"{len(rows[0] & rows[1])} {said}" in printed
    assert "ten" not in printed.partition("They differ from rank")[2].partition("They differ from the step")[0]
