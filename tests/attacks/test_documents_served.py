"""Hostile documents through a running server: it stores them, answers, and stays of use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_documents import SHAPES
from tally import Tally

from speckit_memory.engine.answers.excerpts import excerpt, readable
from speckit_memory.memory.parsing.limits import LONGEST_PATH
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.facts.folders import first_sentence
from speckit_memory.server.views.rows.row_text import SearchRow
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

SAVED = {
    "log_paragraphs_with_dashes": 939_000,
    "long_heading_over_many_passages": 400_000,
    "front_matter_nested": 400_000,
    "front_matter_title": 400_000,
    "unrelated_sections": 200_000,
    "blanks": 400_000,
}
FINDABLE = "\n\n# The quokka lives here\n\nA quokka among much else.\n"


@pytest.mark.requirement("I9", "T4", "T22")
@pytest.mark.usefixtures("exhaustive")
def test_the_server_saves_scans_and_goes_on_answering(tmp_path: Path, tally: Tally) -> None:
    for name, size in SAVED.items():
        (tmp_path / f"{name}.md").write_text(SHAPES[name](size) + FINDABLE)
    (tmp_path / "good.md").write_text("# Good\n\nThe wombat is well.\n")

    answers = calls(
        tmp_path,
        ("memory_save", {"filePath": "good.md"}),
        *(("memory_save", {"filePath": f"{name}.md", "force": True}) for name in SAVED),
        ("memory_search", {"query": "wombat"}),
        ("memory_search", {"query": "where does the quokka live", "includeContent": True}),
        ("memory_index_scan", {"force": True}),
        ("memory_list", {"limit": 50}),
        ("memory_health", {}),
    )

    saved, (found, quokkas, scanned, listed, health) = answers[1 : 1 + len(SAVED)], answers[1 + len(SAVED) :]
    assert [answer["data"]["outcome"] for answer in saved] == ["created"] * len(SAVED)
    assert found["data"]["results"][0]["key"] == "good.md"
    assert {row["key"] for row in quokkas["data"]["results"]} <= {f"{name}.md" for name in SAVED}
    assert quokkas["data"]["results"]
    assert (scanned["data"]["failed"], listed["data"]["total"]) == (0, len(SAVED) + 1)
    assert "error" not in health
    tally.tried(len(SAVED))


@pytest.mark.requirement("I9", "T4")
def test_a_document_that_was_cut_is_saved_and_the_answer_says_what_was_cut(tmp_path: Path, tally: Tally) -> None:
    (tmp_path / "log.md").write_text(SHAPES["log_paragraphs_with_dashes"](200_000))
    [saved] = calls(tmp_path, ("memory_save", {"filePath": "log.md"}))
    assert saved["data"]["outcome"] == "created"
    assert [problem["code"] for problem in saved["data"]["problems"]] == ["E094"]
    assert saved["data"]["problems"][0]["where"] == {"file": "log.md", "line": 1, "column": 1}
    tally.tried()


@pytest.mark.requirement("T2")
def test_headings_of_an_older_store_fill_no_answer(tmp_path: Path, tally: Tally) -> None:
    (tmp_path / "a.md").write_text("# A\n\nThe quokka.\n")
    assert call(tmp_path, ["index", ".", "--json"]).status == 0
    with Database.open(tmp_path / "memory.db") as database, database.write() as txn:
        txn.connection.execute("UPDATE chunks SET heading = ?", ("far " * 500_000,))
        txn.connection.execute("UPDATE memories SET title = ?", ("wide " * 2000,))

    found, _ = calls(tmp_path, ("memory_search", {"query": "quokka"}), ("memory_list", {}))

    assert all(len(row["heading"]) <= LONGEST_PATH for row in found["data"]["results"])
    shown = call(tmp_path, ["search", "quokka", "--json"])
    assert len(shown.out) < 50_000
    tally.tried(2)


BLANKS = " " * 200_000


@pytest.mark.requirement("T2", "C13")
@pytest.mark.parametrize(
    "text",
    [
        f"# a{BLANKS}b", f"# a{' #' * 100_000}b", f"a{BLANKS}b\n" * 2, "<!--" * 50_000, "<!-- x " * 30_000,
        "[" * 100_000, "[a](" * 50_000, f"#{BLANKS}", "# a\n" * 50_000, f"problem{BLANKS}x", "\t \t" * 60_000,
        "```\n~~~\n" * 30_000, f"a{BLANKS}\n===",
    ],
)  # fmt: skip
def test_passages_are_shown_in_linear_time(text: str, tally: Tally) -> None:
    """Hours, were every division of the blanks and every open comment tried."""
    assert len(excerpt(readable(text), ["quokka"], 400)) <= 409
    row = {"id": 1, "key": "a.md", "title": "a", "tier": "normal", "state": "HOT"}
    assert "a.md" in SearchRow(1, row).text(text)
    assert len(first_sentence(text)) <= 150
    tally.tried(3)
