"""Documents without ANCHOR tags, from the doors: what they say under well-known headings is found by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

NOTES = """# Importer

## 1. Current status

The importer reads half of the files.

## 2. Remaining work

Finish the importer, then measure it.

## 3. Blocked by

Nobody knows the licence of the samples.
"""
RECORD = """# Format of the importer

## Context and Problem Statement

The importer needs a format.

## Decision Outcome

Protocol buffers.

## Alternatives considered

JSON, which is slow in the importer.
"""
SUMMARY = "# Importer of last year\n\n## Summary\n\nIt was an importer.\n"
FILES = {
    "specs/7/handover.md": NOTES,
    "specs/7/decision-record.md": RECORD,
    "docs/importer.md": SUMMARY,
    "docs/knowledge.md": SUMMARY.replace("Importer of last year", "Handbook") + "\n## Status\n\nDone.\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("headed")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert call(root, ["index", "."]).status == 0
    return root


def by_key(data: dict[str, Any]) -> dict[str, str]:
    return {row["key"]: row["memory_text"] for row in data["results"]}


@pytest.mark.requirement("I11.sections", "A7")
def test_anchors_of_a_search_and_a_resumed_session_find_headings(project: Path) -> None:
    searched, resumed = calls(
        project,
        ("memory_search", {"query": "importer", "includeContent": True, "anchors": ["decisions", "alternatives"]}),
        ("memory_context", {"input": "where were we?", "mode": "resume"}),
    )
    assert by_key(searched["data"]) == {
        "specs/7/decision-record.md": "[decisions]\n## Decision Outcome\n\nProtocol buffers.\n\n"
        "[alternatives]\n## Alternatives considered\n\nJSON, which is slow in the importer."
    }
    # what has headings of any document alone is no handover
    assert list(by_key(resumed["data"])) == ["specs/7/handover.md"]
    assert resumed["data"]["results"][0]["notes"]["sections"] == ["state", "next-steps", "blockers"]
    assert (
        "[next-steps]\n## 2. Remaining work\n\nFinish the importer, then measure it."
        in (by_key(resumed["data"])["specs/7/handover.md"])
    )


@pytest.mark.requirement("I11.sections", "T4")
def test_a_section_is_shown_and_added_to_by_what_it_is(project: Path) -> None:
    shown = call(project, ["show", "specs/7/decision-record.md", "--section", "decisions"])
    assert (shown.status, shown.out.strip().splitlines()[-1].strip()) == (0, "Protocol buffers.")
    added = ["save", "specs/7/handover.md", "--content", "Tell the others.", "--append", "--section", "next-steps"]
    assert call(project, added).status == 0
    text = (project / "specs/7/handover.md").read_text()
    assert text.partition("## 3.")[0].endswith("then measure it.\n\nTell the others.\n\n")


@pytest.mark.requirement("I11.sections")
def test_who_asks_for_a_section_that_is_not_there_is_told_the_headings(project: Path) -> None:
    [missing] = calls(
        project, ("memory_search", {"query": "importer", "includeContent": True, "anchors": ["rollback"]})
    )
    assert "rollback" in str(missing)
    assert "Decision Outcome" in str(missing)
