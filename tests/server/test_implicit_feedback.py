"""Signals that need no label, from the tools to the report: what they cost whom in mixed answers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from tests.server.doors import call, with_client

BM25 = (
    "extends: none\ncandidates: {{channels: [{{use: bm25, k1: 8, b: {b}}}]}}\nfusion: [{{use: single, scale: bm25}}]\n"
)
MIXED = "budgets_ms: {shadow: 60000}\nshadows: [{use: long.yaml, interleave: true}]\n"
SESSION = "mine"
FIRST = "how to recover a failed deployment of a wombat"
REPHRASED = "recovering when deployments failed: numbat"
UNRELATED = "numbat diet"


@pytest.fixture
def mixed(workspace: Path) -> Path:
    """A workspace whose answers two pipelines mix that disagree from the first row on: one likes short documents."""
    for animal in ("wombat", "numbat"):
        (workspace / "docs" / f"{animal}-short.md").write_text(f"# Notes 1\n\nThe {animal} sleeps.\n")
        text = f"The {animal} eats. " * 3 + "Grass grows at night. " * 40
        (workspace / "docs" / f"{animal}-long.md").write_text(f"# Notes 2\n\n{text}\n")
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text(MIXED + BM25.format(b=1))
    (workspace / ".speckit" / "long.yaml").write_text("pipeline: long\n" + BM25.format(b=0))
    return workspace


def told_after(root: Path, *more: tuple[str, str], cite: str = "") -> dict[str, Any]:
    """The comparison once a session has asked, opened what the variant brought, asked more (session, words) and saved a
    document that cites a memory."""

    async def work(client: Any) -> None:
        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.structured_content
            return dict(result.structured_content["data"])

        await ask("memory_index_scan")
        found = await ask("memory_search", query=FIRST, sessionId=SESSION)
        keys = [row["key"] for row in found["results"]]
        assert sorted(keys) == ["docs/wombat-long.md", "docs/wombat-short.md"]
        await ask("memory_search", key="docs/wombat-long.md", sessionId=SESSION)
        for session, words in more:
            await ask("memory_search", query=words, sessionId=session)
        if cite:
            await ask("memory_save", content=f"# Sleep\n\nSee {cite}.\n", filePath="docs/sleep.md", force=True)

    with_client(root, work)
    [told] = call(root, ["shadow", "report", "--json"]).json["comparisons"]
    assert told["mode"] == "interleaved"
    return dict(told)


def duels(told: dict[str, Any]) -> tuple[int, int, int]:
    """Wins of the variant, of the control, and ties with a use."""
    return told["interleaving"]["variant_wins"], told["interleaving"]["control_wins"], told["interleaving"]["ties"]


@pytest.mark.requirement("P5.implicit")
def test_an_opening_earns_nothing_once_the_session_rephrases_its_question(mixed: Path) -> None:
    told = told_after(mixed, (SESSION, REPHRASED))
    assert told["implicit_feedback"]["rephrased"] == 1
    assert duels(told) == (0, 0, 1)
    assert "Without labels: 1 rephrased" in call(mixed, ["shadow", "report"]).out


@pytest.mark.usefixtures("processes")
@pytest.mark.requirement("P5.implicit")
def test_the_page_tells_what_readers_showed_without_labels(mixed: Path) -> None:
    told_after(mixed, (SESSION, REPHRASED))
    call(mixed, ["shadow", "report", "--html", "page.html"]).ok()
    assert "Without labels: 1 rephrased" in (mixed / "page.html").read_text()


@pytest.mark.requirement("P5.implicit")
@pytest.mark.parametrize(
    "more", [("another", REPHRASED), (SESSION, UNRELATED), (SESSION, f"{FIRST} or numbat")],
    ids=["another session", "another subject", "an answer in common"],
)  # fmt: skip
def test_an_opening_earns_after_questions_that_do_not_say_the_answer_failed(mixed: Path, more: tuple[str, str]) -> None:
    told = told_after(mixed, more)
    assert told["implicit_feedback"]["rephrased"] == 0
    assert duels(told) == (1, 0, 0)


@pytest.mark.requirement("P5.implicit")
def test_what_was_cited_beats_what_was_opened_and_passed_over(mixed: Path) -> None:
    told = told_after(mixed, cite="docs/wombat-short.md")
    assert told["implicit_feedback"]["passed_over"] == {"variant": 1}
    assert duels(told) == (0, 1, 0)


@pytest.mark.requirement("P5.implicit")
def test_what_is_cited_of_a_later_answer_passes_over_what_was_opened_before(mixed: Path) -> None:
    told = told_after(mixed, (SESSION, UNRELATED), cite="docs/numbat-short.md")
    assert told["implicit_feedback"]["passed_over"] == {"variant": 1}
    assert duels(told) == (0, 1, 1)


@pytest.mark.requirement("P5.implicit")
def test_what_was_opened_and_cited_is_not_passed_over(mixed: Path) -> None:
    told = told_after(mixed, cite="docs/wombat-long.md")
    assert told["implicit_feedback"] == {"rephrased": 0, "opened_not_cited": {}, "passed_over": {}, "unused": 0}
    assert duels(told) == (1, 0, 0)


@pytest.mark.requirement("P5.implicit")
def test_a_citation_counts_even_where_the_question_was_rephrased(mixed: Path) -> None:
    told = told_after(mixed, (SESSION, REPHRASED), cite="docs/wombat-short.md")
    assert told["implicit_feedback"]["rephrased"] == 1
    assert duels(told) == (0, 1, 0)


@pytest.mark.requirement("P5.implicit")
def test_that_a_question_was_rephrased_is_known_when_its_words_are_forgotten(mixed: Path) -> None:
    told_after(mixed, (SESSION, REPHRASED))
    with EvaluationDatabase.open(evaluation_file(mixed / "memory.db")) as database:
        database.prune(before=0.0, max_bytes=10**9, texts_before=float("inf"))
        assert {one.question for one in database.queries()} == {None}
    [told] = call(mixed, ["shadow", "report", "--json"]).json["comparisons"]
    assert told["implicit_feedback"]["rephrased"] == 1
    assert duels(told) == (0, 0, 1)


@pytest.mark.requirement("P5.implicit")
def test_answers_count_as_unused_ten_minutes_later(mixed: Path) -> None:
    at_once = told_after(mixed, (SESSION, UNRELATED))
    with closing(sqlite3.connect(evaluation_file(mixed / "memory.db"))) as database, database:
        database.executescript("UPDATE queries SET at = at - 601; UPDATE uses SET at = at - 601")
    [later] = call(mixed, ["shadow", "report", "--json"]).json["comparisons"]
    signals = [one["implicit_feedback"] for one in (at_once, later)]
    assert [(one["unused"], one["opened_not_cited"]) for one in signals] == [(0, {}), (1, {"variant": 1})]
    assert duels(later) == duels(at_once) == (1, 0, 0)


@pytest.mark.requirement("P5.implicit")
@pytest.mark.parametrize(("keep_texts", "rephrased"), [("7", 1), ("never", 0)])
def test_commands_without_a_session_are_one_and_words_that_are_not_kept_tell_nothing(
    mixed: Path, keep_texts: str, rephrased: int
) -> None:
    (mixed / ".speckit" / "config.yaml").write_text(f"evaluation: {{keep_texts: {keep_texts}}}\n")
    call(mixed, ["index", "docs"]).ok()
    for words in (FIRST, REPHRASED):
        call(mixed, ["search", words]).ok()
    [told] = call(mixed, ["shadow", "report", "--json"]).json["comparisons"]
    assert (told["queries"], told["implicit_feedback"]["rephrased"]) == (2, rephrased)
