"""A moment of a year as a folder: a dataset for `eval run`, and beside it the store that has lived so long."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.ageing.year import STORE, Checkpoint

QUERIES, QRELS, ABOUT = "queries.jsonl", "qrels/test.tsv", "moment.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A judged query as it was written: `stale` are the keys of what would answer it wrongly."""

    id: str
    text: str
    kind: str
    session: str
    grades: Mapping[str, float]
    stale: frozenset[str]
    asked_before: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """A folder that `write` made."""

    folder: Path
    regime: str
    seed: int
    day: int
    now: float
    events: Mapping[str, int]
    queries: tuple[Asked, ...]

    @property
    def store(self) -> Path:
        """The store's file."""
        return self.folder / STORE


def write(folder: Path, root: Path, regime: str, seed: int, checkpoint: Checkpoint) -> None:
    """Copies the documents and the store of a year below `root`, and writes queries and judgements beside them.

    The documents are a dataset in the layout of `speckit-memory eval run --dataset`, which knows nothing of the year;
    metadata of queries hold what that passes over.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("docs", ".speckit"):
        shutil.copytree(root / name, folder / name)
    with (folder / QUERIES).open("w", encoding="utf-8") as lines:
        for query in checkpoint.queries:
            about = {
                "category": query.question.kind,
                "session": query.session,
                "stale": sorted(query.stale),
                "asked_before": query.asked_before,
            }
            lines.write(json.dumps({"_id": query.id, "text": query.question.text, "metadata": about}) + "\n")
    (folder / QRELS).parent.mkdir()
    with (folder / QRELS).open("w", encoding="utf-8") as lines:
        lines.write("query-id\tcorpus-id\tscore\n")
        for query in checkpoint.queries:
            lines.writelines(f"{query.id}\t{key}\t{grade:g}\n" for key, grade in sorted(query.grades.items()))
    moment = {
        "regime": regime,
        "seed": seed,
        "day": checkpoint.day,
        "now": checkpoint.now,
        "events": dict(checkpoint.events),
    }
    (folder / ABOUT).write_text(json.dumps(moment), encoding="utf-8")


def read(folder: Path) -> Moment:
    """What `write` wrote."""
    about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    grades: dict[str, dict[str, float]] = {}
    for line in (folder / QRELS).read_text(encoding="utf-8").splitlines()[1:]:
        query, key, grade = line.split("\t")
        grades.setdefault(query, {})[key] = float(grade)
    records = [json.loads(line) for line in (folder / QUERIES).read_text(encoding="utf-8").splitlines()]
    queries = tuple(
        Asked(
            record["_id"], record["text"], record["metadata"]["category"], record["metadata"]["session"],
            grades[record["_id"]], frozenset(record["metadata"]["stale"]), record["metadata"]["asked_before"],
        )
        for record in records
    )  # fmt: skip
    return Moment(folder, about["regime"], about["seed"], about["day"], about["now"], about["events"], queries)
