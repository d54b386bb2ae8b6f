"""Mixed answers through the tools: what an agent finds useful is credited to the pipeline that put it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

BM25 = "extends: none\ncandidates: {channels: [{use: bm25}]}\nfusion: [{use: single, scale: bm25}]\n"
VECTOR = "pipeline: meaning\n" + BM25.replace("use: bm25", "use: vector").replace("scale: bm25", "scale: cosine")
SHADOWS = "budgets_ms: {shadow: 60000}\nshadows: [{use: meaning.yaml, interleave: true}]\n"
ASK = ("memory_search", {"query": "copying a file with SQLite", "limit": 3})


@pytest.mark.requirement("P5.mixed", "P5.credit")
def test_an_agent_chooses_from_mixed_answers_and_the_report_counts_it(workspace: Path) -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text(SHADOWS + BM25)
    (workspace / ".speckit" / "meaning.yaml").write_text(VECTOR)
    [found] = calls(workspace, ASK)
    ids = [row["id"] for row in found["data"]["results"]]
    judged = calls(workspace, *[("memory_validate", {"id": one, "wasUseful": True}) for one in ids])

    [told] = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]

    assert len(judged) == len(ids) > 1
    assert told["mode"] == "interleaved"
    assert told["variant"]["name"] == "meaning"
    assert (told["interleaving"]["queries"], told["interleaving"]["used"]) == (1, 1)
    shown = call(workspace, ["search", "copying a file with SQLite", "--limit", "3"]).out
    assert "mixed with the answer of the pipeline meaning " in shown
