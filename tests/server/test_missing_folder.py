"""Who asks about a folder that is not there is told so, by every door in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine.answers.empty_answers import EMPTY_STORE
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

SAID = "no memory is in a folder 'no/such'; folders are named from the workspace root, as in the keys"


def all_doors(root: Path, folder: str) -> tuple[list[str], list[list[str]]]:
    """The summaries of a list and of a health report, over MCP and on the console, and the hints of each with those of
    a search."""
    listed, aliases, found = calls(
        root,
        ("memory_list", {"specFolder": folder}),
        ("memory_health", {"reportMode": "divergent_aliases", "specFolder": folder}),
        ("memory_search", {"query": "rank fusion", "specFolder": folder}),
    )
    document: dict[str, Any] = call(root, ["list", "--folder", folder, "--json"]).json
    summary, *lines = call(root, ["list", "--folder", folder]).ok().out.splitlines()
    warned = [line for line in lines if not line.startswith("  ")]
    hints = [listed["hints"], aliases["hints"], document["warnings"], warned, found["hints"]]
    return [listed["summary"], aliases["summary"], summary], hints


@pytest.mark.requirement("T5.parameters", "T7.parameters", "C6")
@pytest.mark.parametrize("folder", ["no/such", "./no/such/", "no\\such"])
def test_a_folder_that_is_not_there_is_named_by_every_door_alike(indexed: Path, folder: str) -> None:
    summaries, hints = all_doors(indexed, folder)

    assert summaries == [
        "0 memories stored in no/such",
        "0 documents in no/such, in several folders",
        "0 memories stored in no/such",
    ]
    assert hints == [[SAID]] * 5


@pytest.mark.requirement("T5.parameters", "T7.parameters")
def test_a_folder_with_memories_is_named_in_the_summary_and_nothing_is_amiss(indexed: Path) -> None:
    summaries, hints = all_doors(indexed, "docs/storage/")

    assert summaries == [
        "2 memories stored in docs/storage",
        "0 documents in docs/storage, in several folders",
        "2 memories stored in docs/storage",
    ]
    assert hints[:4] == [[]] * 4


@pytest.mark.requirement("T5.parameters", "T7.parameters")
def test_who_asks_for_all_folders_is_told_of_none(indexed: Path) -> None:
    for folder in ("", "."):
        summaries, hints = all_doors(indexed, folder)

        assert summaries == ["6 memories stored", "0 documents in several folders", "6 memories stored"]
        assert hints[:4] == [[]] * 4


@pytest.mark.requirement("T5.parameters", "T7.parameters")
def test_an_empty_store_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert call(tmp_path, ["index", "docs"]).status == 0

    tool = "the store is empty: run `memory_index_scan`"
    assert [first for first, *_ in all_doors(tmp_path, "docs")[1]] == [tool, tool, EMPTY_STORE, EMPTY_STORE, tool]


@pytest.mark.requirement("T7.parameters")
def test_a_folder_of_links_alone_is_there_where_its_links_are_told(workspace: Path) -> None:
    (workspace / "links").mkdir()
    (workspace / "links/tone.md").symlink_to("../docs/tone.md")
    assert call(workspace, ["index", "docs", "links"]).status == 0

    [found] = calls(workspace, ("memory_health", {"reportMode": "divergent_aliases", "specFolder": "links"}))

    assert found["summary"] == "1 document in links, in several folders"
    assert [hint for hint in found["hints"] if "no memory" in hint] == []
    assert found["data"]["aliases"][0]["keys"] == ["docs/tone.md", "links/tone.md"]


@pytest.mark.requirement("T5.parameters", "T7.parameters")
@pytest.mark.parametrize("typed", ["storage", "{root}/docs/storage", "backup/docs/storage/"])
def test_the_folder_that_was_meant_is_named_by_every_door_alike(indexed: Path, typed: str) -> None:
    _, hints = all_doors(indexed, typed.format(root=indexed))

    assert hints[0][0].endswith(
        "; did you mean 'docs/storage'? Folders are named from the workspace root, as in the keys"
    )
    assert hints == [hints[0]] * 5


@pytest.mark.requirement("T22.missing", "I8")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("docs/storag", "docs/storage"), ("storage", "docs/storage"), ("docs\\storage", "docs/storage"),
        ("Docs", "docs"), ("docs/tone", "docs/tone.md"), ("no/such", ""), (" ", ""),
    ],
)  # fmt: skip
def test_a_scan_of_a_folder_that_is_not_there_is_an_error_with_the_nearest_name(
    workspace: Path, typed: str, meant: str
) -> None:
    [scanned] = calls(workspace, ("memory_index_scan", {"specFolder": typed}))
    printed = call(workspace, ["index", typed, "--json"])

    perhaps = ": there is no such file or folder" + (f"; did you mean '{meant}'?" if meant else "")
    assert (scanned["error"]["code"], scanned["error"]["message"].endswith(perhaps)) == ("E010", True)
    assert (printed.status, printed.json["error"]["message"].endswith(perhaps)) == (2, True)


@pytest.mark.requirement("T22.missing")
def test_who_has_no_store_yet_is_told_the_nearest_name_too(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    [scanned] = calls(tmp_path, ("memory_index_scan", {"specFolder": "doc"}))
    printed = call(tmp_path, ["index", "doc", "--json"])

    for error in (scanned["error"], printed.json["error"]):
        assert (error["code"], error["message"]) == (
            "E010", "doc: there is no such file or folder; did you mean 'docs'?"
        )  # fmt: skip
    assert not (tmp_path / "memory.db").exists()
