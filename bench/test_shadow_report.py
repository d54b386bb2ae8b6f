"""What a shadow report on many recorded queries costs (feature P5): a small multiple of reading their rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from speckit_memory.evaluation.experiments.experiments import judge_experiments
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Observation,
    QueryRecord,
    StepCost,
    VariantRecord,
)

QUERIES, ROWS, STEPS = 10_000, 20, 30
ALLOWED = 12.0
"""Processor time of the report against that of reading its rows alone."""
_ROWS = "SELECT * FROM queries q JOIN answers a ON a.query = q.number JOIN layouts l ON l.number = a.layout"


def observation(number: int, random: np.random.Generator) -> Observation:
    """A query that a shadow answered too, on every other query in another order."""
    memories = random.choice(3_000, ROWS, replace=False)
    answers = [
        AnswerRecord(
            pipeline,
            tuple(ids.tolist()),
            tuple(1 / rank for rank in range(1, ROWS + 1)),
            10.0,
            tuple(StepCost("rerank", f"step{step}", 0.25, ROWS, ROWS, "ran") for step in range(STEPS)),
        )
        for pipeline, ids in (("c", memories), ("v", random.permutation(memories) if number % 2 else memories))
    ]
    query = QueryRecord(
        f"{number:016x}", 1e9 + number, "understand", "simple", "", "auto", 20, 1, "", "s", number,
        {"text": f"question {number}"},
    )  # fmt: skip
    return Observation(query, answers[0], (VariantRecord("shadow", answers[1]),))


@pytest.mark.requirement("P5")
def test_a_shadow_report_costs_a_small_multiple_of_reading_its_rows(benchmark: Any, tmp_path: Path) -> None:
    random, file = np.random.default_rng(7), tmp_path / "memory.evaluation.db"
    ratios: list[float] = []

    def compare() -> None:
        begun = time.process_time()
        with apsw.Connection(str(file)) as connection:
            connection.execute(_ROWS).fetchall()
        read = time.process_time()
        [judged] = judge_experiments(database)
        ratios.append((time.process_time() - read) / (read - begun))
        assert (judged.report.compared, len(judged.report.steps)) == (QUERIES, STEPS)

    with EvaluationDatabase.open(file) as database:
        database.record(observation(number, random) for number in range(QUERIES))
        benchmark.pedantic(compare, rounds=3, warmup_rounds=1)
    benchmark.extra_info["ratio"] = round(min(ratios), 2)
    print(f"{min(ratios):.1f} times reading the rows")
    assert min(ratios) < ALLOWED
