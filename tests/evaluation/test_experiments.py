"""What is read of the evaluation database: one experiment, and what kept evaluations measured, by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.evaluation.experiments.experiments import judge_experiments
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    EvaluationFigure,
    ExperimentRecord,
    Observation,
    QueryRecord,
    RecordedPair,
    StoredEvaluation,
    VariantRecord,
    experiment_id,
)
from tests.server.doors import call


def seen(number: int) -> Observation:
    """A query that three pipelines answered beside the control, one of them the control itself."""
    query = QueryRecord(f"{number:016x}", 1000.0 + number, "understand", "simple", "", "auto", 10, 1, "", "s", number)
    beside = [VariantRecord("shadow", AnswerRecord(name, (2, 1), (0.5, 0.4), 5.0)) for name in ("v", "w", "c")]
    return Observation(query, AnswerRecord("c", (1, 2), (0.5, 0.4), 5.0), tuple(beside))


def test_only_the_experiment_that_is_asked_for_and_its_noise_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    every = EvaluationDatabase.pairs_of

    def noting(
        self: EvaluationDatabase, experiment: ExperimentRecord, since: float | None = None
    ) -> list[RecordedPair]:
        read.append(experiment.variant.hash)
        return every(self, experiment, since)

    monkeypatch.setattr(EvaluationDatabase, "pairs_of", noting)
    grouped: list[str] = []
    listed = EvaluationDatabase.experiments

    def listing(
        self: EvaluationDatabase, since: float | None = None, *, experiment: str = ""
    ) -> list[ExperimentRecord]:
        grouped.append(experiment)
        return listed(self, since, experiment=experiment)

    monkeypatch.setattr(EvaluationDatabase, "experiments", listing)
    with EvaluationDatabase.open(tmp_path / "memory.evaluation.db") as database:
        database.record([seen(number) for number in range(12)])
        [one] = judge_experiments(database, experiment=experiment_id("c", "v", "shadow"))
        assert sorted(read) == ["c", "v"]
        assert grouped == [experiment_id("c", name, "shadow") for name in ("v", "c")]
        assert [found.variant.hash for found in database.experiments(experiment=grouped[0])] == ["v"]
        assert (one.report.compared, len(one.pairs)) == (12, 12)
        assert one.report.noise is not None
        assert one.report.noise.ordering_differences == 12
        assert [len(found.pairs) for found in judge_experiments(database)] == [12, 12, 12]
        assert judge_experiments(database, experiment="ffffffffffff") == []


DAY = 86_400.0


def test_the_command_lists_what_a_comparison_kept_with_its_id(workspace: Path) -> None:
    old = StoredEvaluation("a" * 12, "eval gate", DAY, "mine", "d", {"pipelines": [{"name": "rsf", "hash": "c" * 12}]})
    with EvaluationDatabase.open(workspace / "memory.evaluation.db") as database:
        database.keep(old, [EvaluationFigure("c" * 12, "nDCG@10", 0.25, 7)])
    compared = call(
        workspace, ["eval", "compare", "--own", "--pipeline", "default", "--pipeline", "bm25", "--json"]
    ).ok()

    ran = call(workspace, ["eval", "history", "--json"])

    first, *latest = ran.json["evaluations"]
    assert (first["id"], first["command"], first["at"], first["dataset"]) == ("a" * 12, "eval gate", DAY, "mine")
    assert (first["pipeline"], first["value"], first["queries"]) == ({"name": "rsf", "hash": "c" * 12}, 0.25, 7)
    assert {one["id"] for one in latest} == {compared.json["id"]}
    figures = {one["name"]: one["metrics"]["nDCG@10"] for one in compared.json["pipelines"]}
    assert {one["pipeline"]["name"]: one["value"] for one in latest} == figures
    assert "MRR@5" in ran.json["metrics"]
    lines = call(workspace, ["eval", "history"]).out.splitlines()
    assert len(lines) == 7
    assert lines[3].split()[:3] == ["1970-01-02", "00:00", "a" * 12]


def test_what_nobody_measured_is_said_with_what_was(workspace: Path) -> None:
    assert call(workspace, ["eval", "history"]).out == "No kept evaluation measured nDCG@10.\n"
    with EvaluationDatabase.open(workspace / "memory.evaluation.db") as database:
        kept = StoredEvaluation("a" * 12, "eval gate", DAY, "mine", "d", {})
        database.keep(kept, [EvaluationFigure("c" * 12, "nDCG@10", 0.25, 7)])
    told = call(workspace, ["eval", "history", "--metric", "nDCG@5"]).out
    assert told == "No kept evaluation measured nDCG@5; there are figures of nDCG@10.\n"
