"""What is read of the evaluation database when one experiment is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.evaluation.experiments.experiments import judge_experiments
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    ExperimentRecord,
    Observation,
    QueryRecord,
    RecordedPair,
    VariantRecord,
    experiment_id,
)


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
