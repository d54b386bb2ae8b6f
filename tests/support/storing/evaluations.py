"""An evaluation database with rows in every table."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Arm,
    ChannelSighting,
    DroppedQueries,
    EvaluationFigure,
    FlagChange,
    Observation,
    PipelineRecord,
    PlacementChange,
    QueryJudgement,
    QueryRecord,
    Replay,
    ScoredStep,
    ScoreSample,
    StepCost,
    StoredEvaluation,
    UseRecord,
    VariantRecord,
)

PIPELINES = (PipelineRecord("c", "default", 500.0, "one"), PipelineRecord("v", "bm25", None, "other"))


def observation(number: int, text: str, at: float = 1000.0) -> Observation:
    """A query with its answer and that of a shadow, asked so many seconds after `at`."""
    query = QueryRecord(
        f"{number:016x}", at + number, "understand", "simple", "docs", "auto", 10, 1, "s", "abc", 7,
        question={"text": text}, read_point={"now": 1.5}, asked=text,
    )  # fmt: skip
    steps = (StepCost("candidates", "bm25", 1.234, 0, 40, "ran", shared=True),)
    control = AnswerRecord("c", (number, 2**40), (0.5, 1 / 3), 4.5, steps)
    answer = AnswerRecord("v", (2**40, number), (0.1, 1e-300), 6.25, steps, "TypeError:mmr")
    return Observation(query, control, (VariantRecord("shadow", answer, "SPECKIT_RSF", "fusion", 2.5, 0.125),))


def record_everything(path: Path, text: str = "wärmer?\0") -> None:
    """Writes rows of every kind; `text` is that of the questions, and in every other text that a person writes."""
    seen = [observation(number, text) for number in (1, 2)]
    [shadow] = seen[0].variants
    scored = ScoredStep("fusion", "sum", ("a",), ((0.5,),), (0.75,))
    with EvaluationDatabase.open(path) as database:
        database.record(
            seen,
            [DroppedQueries("c", "v", "shadow", "late", 2)],
            uses=[UseRecord(seen[0].query.id, 1, "opened", 1, 1001.5, "s")],
            scorings=[ScoreSample("q", "c", 1002.0, (7,), (scored,), {"bm25": (ChannelSighting(7, 1, 12.5),)})],
            pipelines=PIPELINES,
            retreats=[PlacementChange("c", "v", "off", f"slow {text}".replace("\0", ""), 4.0)],
        )
        database.replayed([Replay(seen[1].query.id, Arm("c", "v", "e"), "served", 7, seen[1].control, shadow)])
        database.judge([QueryJudgement(seen[0].query.id, 1, 3, "judged", "user", 2.0)])
        database.label("list", {"pair": 2.5}, "user", 3.0)
        database.keep(
            StoredEvaluation("a" * 12, "eval compare", 1.0, "d", "e", {"pipelines": [], "about": text}),
            [EvaluationFigure("c", "nDCG@10", 0.5, 110)],
        )
        database.flag_changed(FlagChange("SPECKIT_RSF", "off", "shadow", 1.0, "a" * 12))
        database.record([observation(0, text)])
        database.prune(before=1000.5, max_bytes=10**9)
