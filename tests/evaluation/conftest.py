from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]

CORPUS: list[dict[str, Any]] = [
    {"_id": "fusion", "title": "Rank fusion", "text": "Reciprocal rank fusion merges the lists of several channels."},
    {"_id": "decay", "title": "Forgetting", "text": "Retrievability decays over time until a review."},
    {
        "_id": "rules",
        "title": "House rules",
        "text": "Never push without running the tests.",
        "metadata": {"folder": "rules", "tier": "constitutional", "triggers": ["push"], "created_at": "2026-01-05"},
    },
    {"_id": "sqlite", "title": "Storage", "text": "One SQLite file in WAL mode holds everything that is remembered."},
]
QUERIES: list[dict[str, Any]] = [
    {"_id": "q1", "text": "how are ranked lists of channels merged?", "metadata": {"intent": "understand"}},
    {"_id": "q2", "text": "when does a memory decay?"},
    {"_id": "q3", "text": "may I push?", "metadata": {"folder": "rules"}},
    {"_id": "q4", "text": "what is the airspeed of a swallow?"},
]
QRELS = [("q1", "fusion", 2), ("q2", "decay", 1), ("q3", "rules", 1), ("q4", "fusion", 0)]


def jsonl(records: Sequence[Mapping[str, Any] | str]) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


@pytest.fixture
def write_dataset(tmp_path: Path) -> Write:
    """Writes a dataset; strings among the records are written as they are."""

    def write(
        corpus: Sequence[Mapping[str, Any] | str] = CORPUS,
        queries: Sequence[Mapping[str, Any] | str] = QUERIES,
        qrels: Sequence[tuple[object, ...]] = QRELS,
        edges: Sequence[tuple[object, ...]] | None = None,
        name: str = "tiny",
    ) -> Path:
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        (folder / "corpus.jsonl").write_text(jsonl(corpus), encoding="utf-8")
        (folder / "queries.jsonl").write_text(jsonl(queries), encoding="utf-8")
        rows = [("query-id", "corpus-id", "score"), *qrels]
        (folder / "qrels" / "test.tsv").write_text(tsv(rows), encoding="utf-8")
        if edges is not None:
            rows = [("source", "relation", "target", "strength"), *edges]
            (folder / "edges.tsv").write_text(tsv(rows), encoding="utf-8")
        return folder

    return write


def tsv(rows: Sequence[tuple[object, ...]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)
