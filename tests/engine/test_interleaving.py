"""Answers that two pipelines make together (`interleave: true` on an entry of `shadows`)."""

from __future__ import annotations

import shutil
import sqlite3
import time
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from frame.reckoning import check_explanation

from speckit_memory.channels.vector import Vector
from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.shadowing import interleaved
from speckit_memory.engine.shadowing.shadows import Shadows
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.experiments.experiments import judge_experiments
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import DroppedQueries
from speckit_memory.pipeline.comparing.shadow import ShadowRequest
from speckit_memory.pipeline.running.runner import Runner

LONG = "budgets_ms: {shadow: 60000}\n"
BM25 = "extends: none\ncandidates: {channels: [{use: bm25}]}\nfusion: [{use: single, scale: bm25}]\n"
VECTOR = "extends: none\ncandidates: {channels: [{use: vector}]}\nfusion: [{use: single, scale: cosine}]\n"
QUESTION = "quokka grass"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mixed")
    (root / "notes").mkdir()
    for place in range(8):
        grass = "Grass grows. " * place + "The quokka grazes. " * (8 - place)
        (root / "notes" / f"{place}.md").write_text(f"# Herd {place}\n\n{grass}\n")
    (root / "notes" / "rule.md").write_text("---\nimportance_tier: constitutional\n---\n# Rule\n\nFeed no quokka.\n")
    (root / "vector.yaml").write_text(VECTOR)
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        memory.index([root / "notes"])
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "mixed"))


def opened(root: Path, shadows: str = "[{use: vector.yaml, interleave: true}]", text: str = BM25) -> Memory:
    (root / "mine.yaml").write_text(f"shadows: {shadows}\n{text if 'budgets_ms' in text else LONG + text}")
    return Memory.open(root / "memory.db", root / "mine.yaml", root=root, environ={})


def keys(result: SearchResult) -> list[str]:
    return [row.key for row in result.results]


def alone(root: Path, pipeline: str, **more: Any) -> SearchResult:
    (root / "alone.yaml").write_text(pipeline)
    with Memory.open(root / "memory.db", root / "alone.yaml", root=root, environ={}) as memory:
        return memory.search(QUESTION, **more)


@pytest.mark.requirement("P5.mixed")
def test_a_mixed_answer_holds_rows_of_both_says_so_and_can_be_explained(root: Path) -> None:
    first, second = (keys(alone(root, one, limit=4)) for one in (BM25, VECTOR))
    with opened(root) as memory:
        result = memory.search(QUESTION, limit=4)
        explained = [memory.explain.row(result, row.id) for row in result.results]
        missing = next(one for one in (f"notes/{n}.md" for n in range(8)) if one not in keys(result))
        told, change = memory.explain.why_not(result, missing), memory.explain.smallest_change(result, missing)

    assert first[0] != second[0]
    assert set(keys(result)[:2]) == {first[0], second[0]}
    assert len(result.results) == 4
    scores = [row.score for row in result.results]
    assert all(better > worse for better, worse in pairwise(scores))
    assert all(row.steps[-1] == ("interleave", row.score) for row in result.results)
    for row, explanation in zip(result.results, explained, strict=True):
        check_explanation(explanation.as_json(), row.score)
    assert result.notes.facts["interleaved_with"]["name"] == "vector.yaml"
    assert "below the limit of 4" in told
    assert change is not None
    assert all(row.channels for row in result.results)


@pytest.mark.requirement("P5.mixed")
def test_without_being_asked_for_nothing_is_mixed(root: Path) -> None:
    with opened(root, "[{use: vector.yaml}]") as memory:
        result = memory.search(QUESTION, limit=4)

    assert keys(result) == keys(alone(root, BM25, limit=4))
    assert "interleaved_with" not in result.notes.facts


@pytest.mark.requirement("P5.mixed")
def test_what_the_rules_of_the_house_put_on_top_stays_there(root: Path) -> None:
    pinned = (
        "extends: none\ncandidates: {channels: [{use: bm25}, {use: constitutional}]}\n"
        "fusion: [{use: rrf}]\nrerank: [{use: min_max}, {use: pin}]\nannotate: [{use: constitutional_guarantee}]\n"
    )
    with opened(root, text=pinned) as memory:
        for _ in range(6):
            result = memory.search(QUESTION, limit=3)
            assert keys(result)[0] == "notes/rule.md"
            assert result.notes.facts["interleaved_with"]


@pytest.mark.requirement("P5.mixed")
def test_a_variant_that_fails_leaves_the_answer_as_it_is_and_is_counted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(root, BM25, limit=4)
    monkeypatch.setattr(Vector, "search", lambda *_: 1 / 0)
    with opened(root) as memory:
        result = memory.search(QUESTION, limit=4, now=expected.outcome.query.now)
        assert memory.shadows.finish()
        [state] = memory.shadows.list()

    assert [(row.key, row.score, row.steps) for row in result.results] == [
        (row.key, row.score, row.steps) for row in expected.results
    ]
    assert result.notes == expected.notes
    assert (state.mode, state.seen, state.failed) == ("interleaved", 1, 1)


@pytest.mark.requirement("P5.mixed")
def test_a_variant_over_its_budget_is_ended_between_two_steps(root: Path) -> None:
    with opened(root, text=f"budgets_ms: {{shadow: 0.001}}\n{BM25}") as memory:
        # Whoever waits for a variant waits no longer than its budget for what is known of it, and reading that takes
        # longer than this one: it would be left out, and not ended.
        assert [state.place for state in memory.shadows.list()] == ["beside"]
        result = memory.search(QUESTION, limit=4, deadline_ms=None)  # a late control has no variant beside it
        assert memory.shadows.finish()
        [state] = memory.shadows.list()

    assert keys(result) == keys(alone(root, BM25, limit=4))
    assert (state.seen, state.failed) == (1, 1)


def test_a_variant_of_which_too_little_is_known_in_time_is_left_out_and_that_is_counted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been switched off, which a file tells; the search goes on without it, and the next one has it."""
    told, whole = Event(), Shadows._placed

    def slow(self: Shadows) -> bool:
        assert told.wait(60)
        return whole(self)

    monkeypatch.setattr(Shadows, "_placed", slow)
    with opened(root, text=f"budgets_ms: {{shadow: 0.001}}\n{BM25}") as memory:
        result = memory.search(QUESTION, limit=4, deadline_ms=None)
        told.set()
        [left_out] = memory.shadows.list()
        memory.search(QUESTION, limit=4, deadline_ms=None)
        assert memory.shadows.finish()
        [state] = memory.shadows.list()

    assert keys(result) == keys(alone(root, BM25, limit=4))
    assert (left_out.seen, dict(left_out.dropped)) == (0, {"off": 1})
    assert (state.seen, dict(state.dropped)) == (1, {"off": 1})


@pytest.mark.requirement("P5.mixed")
def test_a_failure_of_the_mixing_itself_leaves_the_answer_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("secret")

    expected = keys(alone(root, BM25, limit=4))
    monkeypatch.setattr(interleaved, "draft_ranking", broken)
    with opened(root) as memory:
        result = memory.search(QUESTION, limit=4)
        assert memory.shadows.finish()
        [state] = memory.shadows.list()

    assert keys(result) == expected
    assert "interleaved_with" not in result.notes.facts
    assert (state.seen, state.failed) == (1, 1)
    with EvaluationDatabase.open(root / "memory.evaluation.db", create=False) as database:
        assert [pair.variant.answer.failure for pair in database.pairs()] == ["ValueError in interleave"]


@pytest.mark.requirement("P5.mixed")
def test_the_deadline_of_the_query_ends_the_variant(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ShadowRequest.run

    def slow(self: ShadowRequest, variant: Runner, store: Any, pause: Any = None) -> Any:
        time.sleep(1.6)
        return whole(self, variant, store, pause)

    monkeypatch.setattr(ShadowRequest, "run", slow)
    with opened(root) as memory:
        result = memory.search(QUESTION, limit=4, deadline_ms=1500)
        assert memory.shadows.finish()
        [state] = memory.shadows.list()

    assert "interleaved_with" not in result.notes.facts
    assert (state.seen, state.failed) == (1, 1)


def test_one_pair_at_a_time_is_mixed(root: Path) -> None:
    two = "[{use: vector.yaml, interleave: true}, {use: rrf, interleave: true}]"
    with pytest.raises(SpeckitError, match=r"answers are mixed with those of 'vector\.yaml' already") as caught:
        opened(root, two)

    assert [str(problem.where).rpartition("/")[2] for problem in caught.value.problems] == ["mine.yaml:1:49"]


@pytest.mark.requirement("P5.credit")
def test_who_is_chosen_from_mixed_answers_wins_the_duel(root: Path) -> None:
    """The served answer is recorded with the team of every row, and what a reader does afterwards is credited."""
    with opened(root) as memory:
        chosen = 0
        for place in range(6):
            result = memory.search(QUESTION, limit=6, query_id=f"{place:016x}")
            memory.feedback.delivered(result)
            assert memory.shadows.finish()
            memory.session.opened.recorder.write()
            with EvaluationDatabase.open(root / "memory.evaluation.db") as database:
                pair = database.pairs()[-1]
            assert (pair.variant.mode, pair.control.memories) == ("interleaved", tuple(r.id for r in result.results))
            teams = dict(zip(pair.control.memories, pair.variant.teams, strict=True))
            assert set(teams.values()) <= {-1, 0, 1}
            own = [one for one, team in teams.items() if team == 1]
            if own:
                memory.learning.validate(own[0], useful=True)
                chosen += 1
    with EvaluationDatabase.open(root / "memory.evaluation.db") as database:
        [found] = judge_experiments(database)

    duels = found.report.duels
    assert chosen > 3
    assert duels is not None
    assert (duels.queries, duels.used, duels.variant_wins, duels.control_wins) == (6, chosen, chosen, 0)
    assert as_document(found.report)["interleaving"]["queries"] == 6


def test_what_was_answered_by_both_is_replayed_for_others_unmixed(root: Path) -> None:
    with opened(root, "[{use: vector.yaml, interleave: true}, rrf]") as memory:
        memory.feedback.delivered(memory.search(QUESTION, limit=4))
        assert memory.shadows.finish()
    with EvaluationDatabase.open(root / "memory.evaluation.db") as database:
        mixed, replayed = sorted(database.pairs(), key=lambda pair: pair.variant.mode)

    assert (mixed.basis, replayed.basis) == ("live", "present")
    assert [pair.variant.mode for pair in (mixed, replayed)] == ["interleaved", "shadow"]
    assert mixed.control.scores != replayed.control.scores


@pytest.mark.parametrize("why", ["queue", "busy", "state", "off", "late", "end", "mixed"])
def test_every_reason_why_a_query_was_not_seen_can_be_kept(root: Path, why: str) -> None:
    with EvaluationDatabase.open(root / "reasons.evaluation.db") as database:
        database.record((), [DroppedQueries("c" * 12, "v" * 12, "shadow", why, 2)])
        assert [dict(one.dropped) for one in database.experiments()] == [{why: 2}]
    with sqlite3.connect(root / "reasons.evaluation.db") as plain, pytest.raises(sqlite3.IntegrityError):
        plain.execute("INSERT INTO dropped VALUES ('c', 'v', 'shadow', 'whim', 1, 1)")
