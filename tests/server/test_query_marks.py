"""Quotes and minus signs as they are typed at the command line and sent by an MCP client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.doors import call, connected

NOTES = {
    "rank.md": "# Lists\n\nWe chose rank fusion of lists for the store.\n",
    "score.md": "# Scores\n\nRelative score fusion (RSF) is no rank fusion.\n",
    "apart.md": "# Apart\n\nThe rank of a list matters. Later fusion of lists costs little, and base64Encode more.\n",
    "rule.md": "---\nimportance_tier: constitutional\n---\n# Rule\n\nNever deploy on Fridays.\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("marks")
    for name, text in NOTES.items():
        (root / name).write_text(text, encoding="utf-8")
    assert call(root, ["index", "."]).status == 0
    return root


def searched(root: Path, *arguments: str) -> Any:
    return call(root, ["search", "--json", *arguments]).ok().json


def keys(rows: list[Mapping[str, Any]]) -> set[str]:
    return {row["key"] for row in rows}


@pytest.mark.requirement("C2", "C3", "C6")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"rank fusion"', {"rank.md", "score.md"}),
        ("“rank fusion”", {"rank.md", "score.md"}),
        ('"rank fusion" -rsf', {"rank.md"}),
        ('fusion -"rank fusion"', {"apart.md"}),
        ('"base64encode"', {"apart.md"}),
    ],
)
def test_only_what_is_asked_for_is_found_and_the_rules_of_the_house(root: Path, query: str, found: set[str]) -> None:
    answer = searched(root, query)

    assert keys(answer["results"]) == found | {"rule.md"}
    assert answer["plan"]["reasons"][0].startswith("marks: ")


def test_a_reader_sees_what_was_asked_for_and_what_could_not_be_honoured(root: Path) -> None:
    out = call(root, ["search", '"rank fusion" "zebra crossing" -rsf']).out

    assert 'asked for memories with "rank fusion" and "zebra crossing" without "rsf"\n' in out
    assert 'warning: no title or passage holds the phrase "zebra crossing"; searched its words instead\n' in out
    assert "asked for memories" not in call(root, ["search", "rank fusion"]).out


def test_a_query_that_begins_with_a_dash_comes_after_two(root: Path) -> None:
    assert keys(searched(root, "--", "-rsf fusion")["results"]) == {"rank.md", "apart.md", "rule.md"}

    assert "put -- before a query" in call(root, ["search", "-rsf fusion"]).ended(2).err


def test_a_query_that_only_leaves_out_is_refused(root: Path) -> None:
    error = call(root, ["search", "--json", "--", "-rsf"]).refused("E043")
    assert error["message"] == "the query says only what to leave out: 'rsf'"


def test_pasted_lines_are_searched_as_they_are(root: Path) -> None:
    answer = searched(root, 'rank fusion\n"zebra crossing" -rsf')

    assert "score.md" in keys(answer["results"])
    assert (answer["plan"]["required"], answer["plan"]["excluded"]) == ([], [])


def test_a_dry_run_shows_the_marks(root: Path) -> None:
    out = call(root, ["pipeline", "plan", '"rank fusion" "zebra crossing" -rsf']).out

    assert '  marks: with "rank fusion" without "rsf"\n' in out
    assert 'warning: no title or passage holds the phrase "zebra crossing"; searched its words instead\n' in out


@pytest.mark.parametrize(("tool", "name"), [("memory_search", "query"), ("memory_context", "input")])
def test_an_agent_gets_what_it_asked_for_and_is_told(root: Path, tool: str, name: str) -> None:
    async def session() -> list[dict[str, Any]]:
        async with connected(root) as client:
            texts = ('"rank fusion" -rsf', '"zebra crossing" fusion', "rank fusion", "-rsf")
            answers = [await client.call_tool(tool, {name: text}) for text in texts]
            return [json.loads(json.dumps(answer.structured_content)) for answer in answers]

    marked, unheld, plain, refused = anyio.run(session)

    assert keys(marked["data"]["results"]) == {"rank.md", "rule.md"}
    assert (marked["data"]["required"], marked["data"]["excluded"]) == (["rank fusion"], ["rsf"])
    assert unheld["hints"][0] == 'no title or passage holds the phrase "zebra crossing"; searched its words instead'
    assert {"rank.md", "score.md", "apart.md"} <= keys(unheld["data"]["results"])
    assert not {"required", "excluded"} & set(plain["data"])
    assert "E043" in json.dumps(refused)


@pytest.mark.parametrize("query", ["base64", "encode", "base64Encode"])
def test_the_words_inside_an_identifier_find_it(root: Path, query: str) -> None:
    ranked = [row["key"] for row in searched(root, query)["results"] if row["key"] != "rule.md"]

    assert ranked[0] == "apart.md"
