"""What was asked is asked again: of another pipeline, in the store or a copy of it, which stays what it is."""

from __future__ import annotations

import hashlib
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.replay import replay
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import QueryJudgement
from tests.server.doors import call

QUESTIONS = ("rank fusion", "write-ahead log", "quokka cache", "backups of the store", "lexical and dense channels")


@pytest.fixture
def asked(workspace: Path) -> Path:
    """A workspace in which five questions were asked, one of them of bm25, and before that one that was not kept."""
    store, config = workspace / "memory.db", workspace / ".speckit" / "config.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("evaluation: {keep_texts: never}\n")
    with Memory.open(store, root=workspace, environ={}) as memory:
        memory.feedback.delivered(memory.search("nothing of this is kept"))
    config.unlink()
    with Memory.open(store, root=workspace, environ={}) as memory:
        for text in QUESTIONS[1:]:
            memory.feedback.delivered(memory.search(text, limit=3))
        with memory.using("bm25") as other:
            other.feedback.delivered(other.search(QUESTIONS[0]))
    return workspace


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.requirement("E1.replay")
def test_logged_queries_run_again_under_another_pipeline_and_leave_the_store_as_it_is(asked: Path) -> None:
    log, store = asked / "memory.evaluation.db", asked / "memory.db"
    before = digest(store)
    seen: list[tuple[int, int]] = []
    result = replay(log, store, "bm25", progress=lambda done, total: seen.append((done, total)))
    report = result.judged.report
    assert digest(store) == before
    assert (report.queries, report.compared, report.failed) == (5, 5, 0)
    assert (result.without_text, result.served_by_others) == (1, 1)
    assert (report.control.name, report.variant.name) == ("default", "bm25")
    assert seen[-1] == (5, 5)
    assert report.noise is not None
    assert report.noise.ordering_differences == 0
    with EvaluationDatabase.open(log, create=False) as database:
        kept = database.evaluation(report.id)
        assert kept is not None
        assert (kept.kind, kept.document["overlap@10"]) == ("eval replay", result.as_json()["overlap@10"])
        [one] = database.measured("overlap@10")
        assert (one.evaluation, one.figure.pipeline, one.figure.queries) == (report.id, report.variant.hash, 5)
        assert len(database.queries()) == 6  # what is asked again is no new question
        assert not any(text in json.dumps(kept.document) for text in QUESTIONS)
        [limited] = {pair.query.limit for pair in result.judged.pairs if pair.query.limit != 10}
        assert limited == 3
    assert all(len(pair.variant.answer.memories) <= pair.query.limit for pair in result.judged.pairs)


@pytest.mark.requirement("E1.replay")
def test_a_pipeline_against_itself_shows_no_difference(asked: Path) -> None:
    result = replay(asked / "memory.evaluation.db", asked / "memory.db", "rrf", "rrf", keep=False)
    agreement = result.judged.report.agreement
    assert agreement is not None
    assert (agreement.ordering_differences, agreement.only_scores) == (0, 0)
    with EvaluationDatabase.open(asked / "memory.evaluation.db", create=False) as database:
        assert database.evaluations() == []


def test_single_values_of_the_pipeline_can_be_changed(asked: Path) -> None:
    log, store = asked / "memory.evaluation.db", asked / "memory.db"
    same, other = (
        replay(log, store, "bm25", "bm25", overrides=values, keep=False).judged.report
        for values in ({}, {"bm25.b": "0.1"})
    )
    assert (same.variant.hash == same.control.hash, other.variant.hash == other.control.hash) == (True, False)


def test_without_texts_it_says_what_to_set(workspace: Path) -> None:
    store, log = workspace / "memory.db", workspace / "memory.evaluation.db"
    with pytest.raises(SpeckitError, match=r"there is nothing to ask again: .* does not exist"):
        replay(log, store, "bm25")
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "config.yaml").write_text("evaluation: {keep_texts: never}\n")
    with Memory.open(store, root=workspace, environ={}) as memory:
        memory.feedback.delivered(memory.search("rank fusion"))
    with pytest.raises(SpeckitError, match="holds 1 queries, all without texts") as raised:
        replay(log, store, "bm25")
    assert "evaluation: {keep_texts: 30}" in raised.value.problems[0].actions[0]


@pytest.mark.requirement("E1.replay")
@pytest.mark.usefixtures("processes")
def test_the_command_asks_a_copy_of_the_store_what_was_asked_in_the_workspace(asked: Path) -> None:
    (asked / "copies").mkdir()
    shutil.copy(asked / "memory.db", asked / "copies" / "friday.db")
    told = call(asked, ["eval", "replay", "--pipeline", "bm25", "--db", "copies/friday.db", "--json"])
    assert (told.status, told.json["queries"], told.json["without_text"]) == (0, 5, 1)
    assert told.json["store"].endswith("copies/friday.db")
    assert sorted(file.name for file in (asked / "copies").iterdir()) == ["friday.db"]
    shown = call(asked, ["eval", "replay", "--pipeline", "bm25", "--against", "rrf", "--no-keep"])
    assert (shown.status, "rrf" in shown.out, "kept as" in shown.out) == (0, True, False)
    assert "1 query without texts left out" in shown.out
    assert "eval judge --experiment" not in shown.out
    refused = call(asked, ["eval", "replay", "--pipeline", "bm25", "--since", datetime.now(UTC).isoformat()])
    assert (refused.status, "nothing to ask again" in refused.err) == (2, True)


FLAG = "SPECKIT_OURS"
LIFE = "group: A, owner: us, since: {}, expires: {}"
MET = "criterion: {metric: ordering_differences, direction: at_most, margin: 5, queries: 5}"


@pytest.mark.requirement("E1.replay", "P11.evidence")
def test_a_flag_is_promoted_by_what_a_replay_showed(asked: Path) -> None:
    today = datetime.now(UTC).date()
    life = LIFE.format(today, today + timedelta(days=30))
    (asked / ".speckit" / "flags.yaml").write_text(
        f"flags: {{{FLAG}: {{state: shadow, was: dark_run, {life}, {MET}}}}}\n"
    )
    (asked / ".speckit" / "pipeline.yaml").write_text(f"rerank: {{add: [{{use: mmr, flag: {FLAG}, before: pin}}]}}\n")
    with EvaluationDatabase.open(asked / "memory.evaluation.db") as database:
        question, *_ = database.served()[1:]
        best = question.control.memories[0]
        database.judge([QueryJudgement(question.query.id, best, 3, "judged", "me", 1.0)])
    name = call(asked, ["eval", "replay", "--flag", FLAG, "--json"]).ok().json["id"]
    with EvaluationDatabase.open(asked / "memory.evaluation.db") as database:
        kept = database.evaluation(name)
    assert kept is not None
    every = kept.document["per_query"]
    assert len(every["queries"]) == 5
    assert [len(times) for times in every["ms"].values()] == [5, 5]
    (control, *_), place = every["values"].values(), every["queries"].index(question.query.id)
    assert [value for value in control["MRR@5"] if value is not None] == [control["MRR@5"][place]] == [1.0]
    # a gate asks a dataset, in which nobody asked these
    error = call(asked, ["eval", "gate", "--own", "--against", name, "--json"]).refused("E030")
    assert "was kept by `eval replay` and replays queries recorded" in error["message"]
    # another pipeline's evidence is refused, this one's is accepted
    other = call(asked, ["eval", "replay", "--pipeline", "bm25", "--json"]).json["id"]
    refused = call(asked, ["flags", "promote", FLAG, "--evidence", other])
    assert (refused.status, "the pipeline with the flag is" in refused.err) == (2, True)
    assert call(asked, ["flags", "promote", FLAG, "--evidence", name, "--json"]).json["after"] == "enabled"
    assert call(asked, ["flags", "audit"]).err == ""


def test_a_replay_is_of_a_pipeline_or_of_a_flag(asked: Path) -> None:
    assert call(asked, ["eval", "replay"]).status == 2
    assert call(asked, ["eval", "replay", "--pipeline", "bm25", "--flag", FLAG]).status == 2
    unknown = call(asked, ["eval", "replay", "--flag", "SPECKIT_RSF_FUSIN", "--json"])
    assert unknown.json["error"]["message"].endswith("did you mean 'SPECKIT_RSF_FUSION'?")
