"""`store verify`: asks two stores the same questions and certifies that their answers are equal."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

from speckit_memory.config.workspace.settings import EVALUATION_VARIABLE
from speckit_memory.config.workspace.store_address import store_label
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.ground_truth.own_queries import own_documents, own_queries
from speckit_memory.evaluation.statistics.report import Report, ReportFact, Table, as_document, in_line
from speckit_memory.memory.indexing.versions import ANALYSER, INTAKE
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.file.schema.migrations import applied_migrations
from speckit_memory.memory.store.reading.reader import engine_versions
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import token_sets

TOLERANCE = 1e-6
"""Greatest accepted difference of two scores."""
SHOWN = 10
"""Number of differences in a certificate."""
_COUNTED = ("memories", "chunks", "triggers", "causal_edges", "edge_history", "judgements")

Question = Mapping[str, Any]
"""The parameters of a search."""
Answer = Sequence[tuple[int, float]]
"""Ids and scores, by rank."""


@dataclass(frozen=True, slots=True)
class StoreStamp:
    """A store of a certificate. The tokenizer is the version of the analysis of its texts; "" where nothing is
    indexed."""

    store: str
    engine: str
    schema: str
    store_id: str
    tokenizer: str
    intake: str
    model: str
    dimensions: int
    token_model: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """The first rank at which two answers differ; a row is None where an answer is shorter."""

    query: str
    rank: int
    first: tuple[int, float] | None
    second: tuple[int, float] | None


@dataclass(frozen=True, slots=True)
class ParityCertificate:
    """What two stores answered to the same questions.

    `digests` are SHA-256: of the questions, and of the ids and exact scores that each store answered.
    """

    version: str
    pipeline: str
    stores: tuple[StoreStamp, StoreStamp]
    recorded: int
    made: int
    seed: int
    rows: int
    greatest_difference: float
    counts_differ: tuple[str, ...]
    different: int
    differences: tuple[AnswerDifference, ...]
    digests: Mapping[str, str]

    @property
    def equal(self) -> bool:
        """Whether every answer has the same ids with equal scores, and both stores hold as many rows."""
        return not self.different and not self.counts_differ

    def as_report(self) -> Report:
        """The certificate."""
        first, second = self.stores
        asked = self.recorded + self.made
        if self.equal:
            verdict = (
                f"equal: {asked:,} questions have the same {self.rows:,} rows in the same order, "
                f"with scores within {TOLERANCE:g}"
            )
        else:
            reasons = [f"{self.different:,} of {asked:,} answers differ"] * bool(self.different)
            reasons += [f"the stores hold different numbers of rows in {name}" for name in self.counts_differ]
            verdict = f"not equal: {'; '.join(reasons)}"
        counts = [
            ["rows", "A", "B"],
            *([name, f"{one:,}", f"{second.counts[name]:,}"] for name, one in first.counts.items()),
        ]
        tables = [Table(counts)]
        if self.differences:
            rows = [
                ["question", "rank", "A", "B"],
                *(
                    [in_line(one.query, 60), str(one.rank), _row(one.first), _row(one.second)]
                    for one in self.differences
                ),
            ]
            tables.insert(0, Table(rows, f"the first {len(self.differences)} differences, as id and score"))
        return Report(
            "Certificate of equal answers",
            verdict,
            "pass" if self.equal else "fail",
            f"speckit-memory {self.version}, pipeline {self.pipeline}, seed {self.seed}",
            [
                ReportFact("A", f"{first.store} ({first.engine})"),
                ReportFact("B", f"{second.store} ({second.engine})"),
                ReportFact("tokenizer of both", first.tokenizer or "none"),
                ReportFact("model of both", first.model or "none"),
                *_facts("schema", first.schema, second.schema),
                *_facts("store id", first.store_id, second.store_id),
                *_facts("indexing rules", first.intake, second.intake),
                ReportFact("questions", f"{self.recorded:,} recorded, {self.made:,} made of the memories"),
                ReportFact("greatest difference of scores", f"{self.greatest_difference:.3g}"),
                *(ReportFact(f"digest of {name}", digest) for name, digest in self.digests.items()),
            ],
            tables,
            data={
                **as_document(self),
                "greatest_difference": self.greatest_difference,  # the document rounds figures to six decimals
                "equal": self.equal,
            },
        )


def _facts(name: str, first: str, second: str) -> Iterator[ReportFact]:
    """A fact about both stores, shown in brief only where it differs."""
    if first == second:
        yield ReportFact(f"{name} of both", first or "none", detail=True)
    else:
        yield ReportFact(f"{name} of A", first or "none")
        yield ReportFact(f"{name} of B", second or "none")


def _row(row: tuple[int, float] | None) -> str:
    return "–" if row is None else f"#{row[0]} {row[1]:.9f}"


def verify_stores(
    first: Path, second: Path, *, questions: int, seed: int, progress: Callable[[int, int], None]
) -> ParityCertificate:
    """Asks both stores recorded questions of the first one and questions made of its memories, through the pipeline.

    Args:
        first: The file or store link of a store.
        second: That of the other one.
        questions: Number of questions; up to half of them are recorded ones.
        seed: Seeds the choice of questions.
        progress: Called with the number of questions asked and of all.

    Raises:
        SpeckitError: E002 and E093 if the stores have different models or tokenizers, E010 without a store, E125 if
            too few questions can be made.
    """
    with ExitStack() as stack:
        environ = {**os.environ, EVALUATION_VARIABLE: "off"}
        memories = [
            stack.enter_context(Memory.open(path, environ=environ, create=False, shadows=False))
            for path in (first, second)
        ]
        stamps = _stamp(memories[0], first), _stamp(memories[1], second)
        _require_comparable(*stamps)
        recorded, made = _questions(memories[0], first, questions, seed)
        now = time.time()
        answered: tuple[list[Answer], list[Answer]] = [], []
        pipelines = set()
        for number, question in enumerate((*recorded, *made), 1):
            for memory, answers in zip(memories, answered, strict=True):
                result = memory.search(**question, now=now, deadline_ms=None, snippet=0)
                pipelines.add(f"{result.pipeline.name} {result.pipeline.hash}")
                answers.append([(row.id, row.score) for row in result.results])
            progress(number, len(recorded) + len(made))
    asked = (*recorded, *made)
    differences = [found for each in zip(asked, *answered, strict=True) if (found := _difference(*each))]
    gaps = [
        abs(one[1] - other[1])
        for pair in zip(*answered, strict=True)
        for one, other in zip(*pair, strict=False)
        if one[0] == other[0]
    ]
    return ParityCertificate(
        version=version("speckit-memory"),
        pipeline=", ".join(sorted(pipelines)),
        stores=stamps,
        recorded=len(recorded),
        made=len(made),
        seed=seed,
        rows=sum(map(len, answered[0])),
        greatest_difference=max(gaps, default=0.0),
        counts_differ=tuple(name for name, count in stamps[0].counts.items() if count != stamps[1].counts[name]),
        different=len(differences),
        differences=tuple(differences[:SHOWN]),
        digests={
            "questions": _digest(asked),
            "answers of A": _digest(answered[0]),
            "answers of B": _digest(answered[1]),
        },
    )


def _stamp(memory: Memory, path: Path) -> StoreStamp:
    def read(database: Database, connection: Connection) -> StoreStamp:
        engine = engine_versions(database)
        return StoreStamp(
            store=store_label(path),
            engine=f"{engine.engine} {engine.version}",
            schema=applied_migrations(connection)[-1],
            store_id=value(connection, "SELECT store_id FROM store_identity"),
            tokenizer=get_meta(connection, ANALYSER) or "",
            intake=get_meta(connection, INTAKE) or "",
            model=get_meta(connection, vectors.MODEL) or "",
            dimensions=vectors.dimensions(connection),
            token_model=get_meta(connection, token_sets.MODEL) or "",
            counts={
                **{name: int(value(connection, f"SELECT count(*) FROM {name}")) for name in _COUNTED},
                "vectors": vectors.count(connection),
            },
        )

    def stamped(opened: Any) -> StoreStamp:
        with opened.database.snapshot_read() as connection:
            return read(opened.database, connection)

    return memory.session.read(stamped)


def _require_comparable(first: StoreStamp, second: StoreStamp) -> None:
    """Raises unless both stores split texts into words and turn them into vectors in the same way."""
    actions = ("copy the store with `speckit-memory store copy`", "or index both again with this version")
    if first.tokenizer != second.tokenizer:
        told = f"the tokenizer of A is {first.tokenizer or 'none'}, that of B is {second.tokenizer or 'none'}"
        raise SpeckitError("E093", told, hint="Answers of different words cannot be equal.", actions=actions)
    for name in ("model", "dimensions", "token_model"):
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            told = f"the {name.replace('_', ' ')} of A is {one or 'none'}, that of B is {other or 'none'}"
            raise SpeckitError("E002", told, hint="Answers by different vectors cannot be equal.", actions=actions)


def _questions(memory: Memory, store: Path, count: int, seed: int) -> tuple[list[Question], list[Question]]:
    """Recorded and made questions, without repetitions."""
    random = Random(seed)
    found = {_digest([question]): question for question in _recorded(store)}
    recorded = list(found.values())
    if len(recorded) > count // 2:
        recorded = random.sample(recorded, count // 2)
    made: list[Question] = []
    try:
        own = own_queries(own_documents(memory), seed=seed)
        made = [{"text": query.text, "folder": query.folder} for query in (*own.queries, *own.unanswerable)]
    except SpeckitError as error:
        if error.code != "E125" or not recorded:
            raise
    wanted = count - len(recorded)
    return recorded, random.sample(made, wanted) if len(made) > wanted else made


def _recorded(store: Path) -> Iterator[Question]:
    """The questions of the evaluation database whose texts are kept, oldest first."""
    for query in read_if_there(store, EvaluationDatabase.queries) or ():
        if query.question:
            known = {name: tuple(one) if isinstance(one, list) else one for name, one in query.question.items()}
            yield {"text": "", **known}


def _difference(question: Question, first: Answer, second: Answer) -> AnswerDifference | None:
    for rank, (one, other) in enumerate(zip_longest(first, second), 1):
        if one is None or other is None or one[0] != other[0] or not abs(one[1] - other[1]) <= TOLERANCE:
            return AnswerDifference(str(question["text"]), rank, one, other)
    return None


def _digest(found: Sequence[Any]) -> str:
    """Hash of plain values; floats are written exactly."""
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()
