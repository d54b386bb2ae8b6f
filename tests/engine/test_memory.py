"""The product through its Python door, on real files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files import write_file
from frame.reckoning import check_explanation

from speckit_memory.channels.trigger import Trigger
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError

NOTES = {
    "decisions/fusion.md": "---\ntitle: Fuse by score\ntrigger_phrases: [score fusion]\ncontext_type: decision\n"
    "importance_tier: important\n---\n# Fuse by score\n\nWe add standardised scores because ranks forget distances.\n",
    "decisions/storage.md": "---\ntitle: One SQLite file\ncausalLinks:\n  caused_by: [decisions/fusion.md]\n---\n"
    "# One SQLite file\n\nEverything lives in one file in WAL mode, REQ-006 demands it.\n",
    "research/gateway.md": "# Gateway\n\nThe gateway calls `computeMPAB` and retries three times.\n",
    "research/memo.md": "# メモ\n\n検索パイプラインの設計を決定した。\n",
    "rules/always.md": "---\ntitle: House rules\nimportance_tier: constitutional\n---\nNever push on Fridays.\n",
    "old/gone.md": "---\ntitle: Fuse by rank\nimportance_tier: deprecated\n---\nRank fusion adds reciprocal ranks.\n",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for key, text in NOTES.items():
        write_file(tmp_path / key, text)
    return tmp_path


@pytest.fixture
def memory(workspace: Path) -> Iterator[Memory]:
    with Memory.open(workspace / "m.db", root=workspace, environ={}, strict=True) as opened:
        opened.index([workspace])
        yield opened


def keys(memory: Memory, query: str, **more: Any) -> list[str]:
    found = [row.key for row in memory.search(query, **more).results]
    return [key for key in found if key != "rules/always.md"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("why are scores added and not ranks?", "decisions/fusion.md"),
        ("REQ-006", "decisions/storage.md"),
        ("computeMPAB", "research/gateway.md"),
        ("compute mpab", "research/gateway.md"),
        ("検索パイプライン", "research/memo.md"),
        ("設計の決定", "research/memo.md"),
    ],
)
def test_identifiers_sentences_and_other_scripts_find_their_memory(memory: Memory, query: str, expected: str) -> None:
    assert keys(memory, query)[0] == expected


def test_everyday_words_alone_find_what_stands_in_every_answer_and_no_more(memory: Memory) -> None:
    result = memory.search("and the")

    assert [row.key for row in result.results] == ["rules/always.md"]
    assert result.notes.evidence_gap


@pytest.mark.requirement("C6.deprecated")
def test_constitutional_memories_come_first_and_deprecated_ones_never(memory: Memory) -> None:
    result = memory.search("rank fusion adds reciprocal ranks")

    assert result.results[0].key == "rules/always.md"
    assert "old/gone.md" not in [row.key for row in result.results]


@pytest.mark.requirement("A5.steps")
def test_every_row_names_its_channels_and_its_last_step_is_its_score(memory: Memory) -> None:
    result = memory.search("why are scores added?")

    assert all(row.channels for row in result.results)
    assert all(row.steps[-1][1] == row.score for row in result.results)
    assert [(-row.score, row.id) for row in result.results] == sorted((-row.score, row.id) for row in result.results)


@pytest.mark.requirement("P8")
def test_an_explanation_ends_with_the_score(memory: Memory) -> None:
    result = memory.search("why are scores added?")

    explained = memory.explain.row(result, "decisions/fusion.md")

    row = next(row for row in result.results if row.key == "decisions/fusion.md")
    check_explanation(explained.as_json(), row.score)


@pytest.mark.requirement("P8")
@pytest.mark.parametrize(
    ("key", "filters", "words"),
    [
        ("decisions/fusion.md", {}, "is result"),
        ("old/gone.md", {}, "deprecated"),
        ("decisions/fusion.md", {"folder": "research"}, "is in the folder 'decisions'"),
        ("decisions/fusion.md", {"tier": "critical"}, "its tier is important"),
        ("research/memo.md", {"limit": 2}, ", below the limit of 2; raise the limit."),
    ],
)
def test_why_not_names_what_kept_a_memory_away(
    memory: Memory, key: str, filters: dict[str, object], words: str
) -> None:
    result = memory.search("why are scores added?", **filters)  # type: ignore[arg-type]

    assert words in memory.explain.why_not(result, key)


@pytest.mark.requirement("P8", "P9")
def test_why_not_names_a_channel_that_fails(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    result = memory.search("meetings of last year", limit=50)
    assert "research/memo.md" not in [row.key for row in result.results]
    monkeypatch.setattr(Trigger, "search", lambda *_: 1 / 0)

    told = memory.explain.why_not(result, "research/memo.md")

    assert "trigger failed (ZeroDivisionError: division by zero)" in told


def test_edges_are_added_by_key_and_a_misspelt_relation_is_named(memory: Memory) -> None:
    assert memory.graph.add_edges([("research/gateway.md", "supports", "decisions/storage.md", 0.9)]) == 1
    with pytest.raises(SpeckitError, match="did you mean 'supports'"):
        memory.graph.add_edges([("research/gateway.md", "suports", "decisions/storage.md", 0.9)])


def test_a_folder_admits_its_memories_only(memory: Memory) -> None:
    assert set(keys(memory, "gateway", folder="research")) <= {"research/gateway.md", "research/memo.md"}


@pytest.mark.requirement("C3")
def test_every_memory_that_holds_a_reference_comes_before_the_others(memory: Memory, workspace: Path) -> None:
    (workspace / "specs").mkdir()
    (workspace / "specs/plan.md").write_text("# Plan\n\nFirst the parser, then REQ-006, and at last the report.\n")
    memory.index([workspace])

    found = keys(memory, "how do scores, ranks, the gateway and its three retries bear on REQ-006")

    assert set(found[:2]) == {"decisions/storage.md", "specs/plan.md"}


@pytest.mark.requirement("I3")
def test_causal_links_of_documents_become_edges(memory: Memory) -> None:
    graph = memory.session.view().graph
    fusion, storage = memory.get("decisions/fusion.md").id, memory.get("decisions/storage.md").id

    assert graph.edge_count == 1
    assert graph.neighbours(np.array([storage]), 1, {}).ids.tolist() == [fusion]


@pytest.mark.parametrize(
    ("query", "more", "code"),
    [
        ("", {}, "E043"),
        ("  \n", {}, "E043"),
        ("?!", {}, "E043"),
        ("x" * 10_001, {}, "E042"),
        ("x", {"limit": 0}, "E032"),
        ("x", {"limit": 101}, "E032"),
        ("x", {"mode": "depe"}, "E030"),
        ("x", {"tier": "urgent"}, "E030"),
        ("x", {"concepts": ("one",)}, "E032"),
    ],
)
@pytest.mark.requirement("T26", "C1.concepts")
def test_a_bad_question_is_refused_with_its_code(
    memory: Memory, query: str, more: dict[str, object], code: str
) -> None:
    with pytest.raises(SpeckitError) as caught:
        memory.search(query, **more)  # type: ignore[arg-type]

    assert [problem.code for problem in caught.value.problems] == [code]
    assert caught.value.exit_status == 2


def test_all_problems_of_a_question_are_reported_at_once(memory: Memory) -> None:
    with pytest.raises(SpeckitError) as caught:
        memory.search("", limit=0, mode="depe")  # type: ignore[arg-type]

    assert {problem.code for problem in caught.value.problems} == {"E030", "E032", "E043"}


def test_the_longest_query_is_answered(memory: Memory) -> None:
    words = "gateway retries " * 625

    assert len(words) == 10_000
    assert keys(memory, words.strip())[0] == "research/gateway.md"


def test_an_empty_store_answers_with_nothing(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as memory:
        result = memory.search("anything")

    assert result.results == ()
    assert result.as_json()["results"] == []


def test_a_search_is_reproducible(memory: Memory) -> None:
    one, two = (memory.search("scores and files", now=2e9, deadline_ms=None) for _ in range(2))

    assert [(r.id, r.score) for r in one.results] == [(r.id, r.score) for r in two.results]


@pytest.mark.requirement("P9")
def test_vectors_of_another_model_leave_a_degraded_answer_that_says_so(workspace: Path) -> None:
    with Memory.open(workspace / "m.db", root=workspace, environ={}) as memory:
        memory.index([workspace])
        with memory.session.database.write() as transaction:
            transaction.connection.execute("UPDATE meta SET value = 'other-model' WHERE value LIKE 'static-%'")
        result = memory.search("gateway")

    assert result.results[1].key == "research/gateway.md"
    assert "vector" in [part.part for part in result.notes.degraded if "other-model" in part.reason]


@pytest.mark.requirement("T7.checks")
def test_health_passes_on_a_fresh_store_and_names_what_is_wrong(memory: Memory) -> None:
    assert [check.name for check in memory.status().checks if not check.ok] == []
    with memory.session.database.write() as transaction:
        transaction.connection.execute("UPDATE meta SET value = 'other-model' WHERE value LIKE 'static-%'")

    assert {"model", "search"} <= {check.name for check in memory.status().checks if not check.ok}
