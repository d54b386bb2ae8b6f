"""An evaluation database beside a store, as if two pipelines had answered queries over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    DroppedQueries,
    Mode,
    Observation,
    PipelineRecord,
    QueryJudgement,
    QueryRecord,
    StepCost,
    VariantRecord,
    experiment_id,
)

CONTROL = PipelineRecord("c0c0c0c0c0c0", "default")
VARIANT = PipelineRecord("abababababab", "rsf")
START = 1_750_000_000.0
EXPERIMENT = experiment_id(CONTROL.hash, VARIANT.hash, "shadow")


def answer(record: PipelineRecord, ids: Sequence[int], ms: float, failure: str = "") -> AnswerRecord:
    """An answer in `ms`, of which a step that both pipelines share takes 2."""
    own = StepCost("fusion", record.name, ms - 2.0, 20, len(ids), "done")
    steps = (StepCost("candidates", "vector", 2.0, 0, 20, "done", shared=True), own)
    return AnswerRecord(record.hash, tuple(ids), tuple(1 / rank for rank in range(1, len(ids) + 1)), ms, steps, failure)


def observed(
    number: int,
    before: Sequence[int],
    after: Sequence[int],
    *,
    variant: PipelineRecord = VARIANT,
    mode: Mode = "shadow",
    flag: str = "",
    failure: str = "",
    question: str = "",
    intent: str = "understand",
) -> Observation:
    """The query of this number, a minute after the one before: the control in 10 ms, the variant in 13."""
    query = QueryRecord(
        f"{number:016x}", START + 60.0 * number, intent, "simple", "", "auto", 10, 1, "", "store", number,
        {"text": question} if question else None,
    )  # fmt: skip
    kept = () if mode == "dark_run" or failure else after
    parted = "" if before == after else f"fusion.{variant.name}"
    beside = VariantRecord(mode, answer(variant, kept, 13.0 + number / 100, failure), flag, parted, 11.0, 0.1)
    return Observation(query, answer(CONTROL, before, 10.0), (beside,))


def recorded(
    store: Path,
    seen: Iterable[Observation],
    *,
    dropped: Iterable[DroppedQueries] = (),
    variants: Sequence[PipelineRecord] = (VARIANT,),
    judged: dict[int, int] | None = None,
) -> EvaluationDatabase:
    """The database of a store with these observations; `judged` grades memories, the same for all queries."""
    database = EvaluationDatabase.open(evaluation_file(store))
    observations = list(seen)
    database.record(observations, dropped, pipelines=(CONTROL, *variants))
    database.judge(
        QueryJudgement(one.query.id, memory, grade, "judged", "a person", one.query.at)
        for one in observations
        for memory, grade in (judged or {}).items()
    )
    return database


def record(store: Path, seen: Iterable[Observation], **more: object) -> None:
    """The same, and closed."""
    with closing(recorded(store, seen, **more)):  # type: ignore[arg-type]
        pass
