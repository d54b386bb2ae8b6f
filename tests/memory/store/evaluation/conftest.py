"""Records as pipelines make them, with memories and times that differ from query to query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import link_at

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Observation,
    QueryRecord,
    StepCost,
    VariantRecord,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the tests have their database."""
    return tmp_path / "memory.evaluation.db"


@pytest.fixture
def evaluation(path: Path, engine: str) -> Iterator[EvaluationDatabase]:
    """An empty database."""
    if engine == "postgres":
        link_at(path)
    with EvaluationDatabase.open(path) as database:
        yield database


@pytest.fixture(scope="session")
def query() -> Callable[..., QueryRecord]:
    """Makes a query from its number."""

    def make(number: int, **facts: Any) -> QueryRecord:
        defaults: dict[str, Any] = {
            "id": f"{number:016x}", "at": 1000.0 + number, "intent": "understand", "complexity": "simple",
            "folder": "docs", "mode": "auto", "limit": 10, "wordings": 1, "session": "", "store": "abc", "state": 7,
        }  # fmt: skip
        return QueryRecord(**(defaults | facts))

    return make


@pytest.fixture(scope="session")
def observation(query: Callable[..., QueryRecord]) -> Callable[..., Observation]:
    """Makes a query with the answer that was served and one beside it, from the query's number."""

    def make(number: int, *, mode: str = "shadow", variants: bool = True, **facts: Any) -> Observation:
        memories, scores = (number, number + 1, 2**40), (0.5, 1 / 3, -number / 7)
        steps = (
            StepCost("candidates", "bm25", 1.234, 0, 40, "ran", shared=True),
            StepCost("rerank", "mmr", number / 1000, 40, 10, "ran"),
        )
        control = AnswerRecord("c" * 12, memories, scores, 4.5, steps)
        answer = AnswerRecord("v" * 12, memories[::-1], scores, 6.25, steps[:1], "" if number % 5 else "TypeError:mmr")
        beside = VariantRecord(mode, answer, "SPECKIT_RSF", "fusion", 2.5, 0.125)  # type: ignore[arg-type]
        return Observation(query(number, **facts), control, (beside,) if variants else ())

    return make
