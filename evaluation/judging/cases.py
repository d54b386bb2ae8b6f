"""Where the pairs to be judged come from: a dataset asked through two pipelines, or a recorded experiment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speckit_memory.config.settings import settings
from speckit_memory.engine.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.distinct import distinct
from speckit_memory.evaluation.experiment_costs import answered
from speckit_memory.evaluation.grounds.ground import GroundSource
from speckit_memory.evaluation.grounds.own_documents import own_documents
from speckit_memory.evaluation.grounds.used_queries import TEXTS_HINT
from speckit_memory.evaluation.judging.disputes import Case
from speckit_memory.evaluation.judging.sitting import SEED, Label
from speckit_memory.evaluation.measure import Report, measure
from speckit_memory.evaluation.run import loaded
from speckit_memory.evaluation.trec_reading import Judgements
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import Judgement, StoredEvaluation
from speckit_memory.pipeline.loading import PipelineSource

KIND = "judgements"
Shown = tuple[str, str]
"""The title and text of a document."""


@dataclass(frozen=True, slots=True)
class Docket:
    """The cases, the documents by key, and what keeps the labels of a judge; `live` ones go on coming in, and are
    those of one of so many `variants`."""

    cases: tuple[Case, ...]
    documents: Mapping[str, Shown]
    keep: Callable[[Sequence[Label], str], None]
    live: bool = False
    variants: int = 1


def of_source(
    source: GroundSource,
    pipelines: Sequence[PipelineSource],
    store: Path | None,
    *,
    imported: Judgements,
    progress: Report | None = None,
    environ: Mapping[str, str] | None = None,
) -> Docket:
    """All queries of a source, judged or not, through two pipelines.

    What is judged already is the source's own, what was `imported`, and what was kept beside `store` before. Raises
    SpeckitError.
    """
    environ = os.environ if environ is None else environ
    if len(pipelines) != 2:
        raise SpeckitError(
            "E030", f"two pipelines are judged; found {len(pipelines)}", actions=("give --pipeline twice",)
        )
    chosen = loaded(pipelines, None, environ)
    ground = source.ground(environ)
    queries, report = ground.dataset.queries, progress or (lambda _: None)
    with ground.opened(ground.dataset, chosen, environ=environ, progress=report) as opened:
        control, variant = measure(opened.memories, queries, now=time.time(), seed=SEED, progress=report)
    name = f"j{ground.digest[:11]}"
    kept = _kept(store, name)
    earlier: dict[str, dict[str, float]] = {}
    for one in kept:
        earlier.setdefault(one["query"], {})[one["key"]] = float(one["grade"])
    cases = tuple(
        Case(query.id, query.text, tuple(a.keys), tuple(b.keys),
             {**ground.dataset.judgements.get(query.id, {}), **imported.get(query.id, {}), **earlier.get(query.id, {})})
        for query, a, b in zip(queries, control, variant, strict=True)
    )  # fmt: skip

    def keep(labels: Sequence[Label], by: str) -> None:
        if store is None or not labels:
            return
        said = [{"query": one.query, "key": one.key, "grade": one.grade, "by": by} for one in labels]
        document = {"judgements": [*kept, *said]}
        with EvaluationDatabase.open(evaluation_file(store)) as database:
            database.keep(StoredEvaluation(name, KIND, time.time(), ground.dataset.name, ground.digest, document))

    return Docket(cases, {one.key: (one.title, one.text) for one in ground.documents}, keep)


def _kept(store: Path | None, name: str) -> Sequence[Mapping[str, Any]]:
    """What was judged of a dataset before, and by whom, in order."""
    if store is None or not evaluation_file(store).is_file():
        return ()
    with EvaluationDatabase.open(evaluation_file(store)) as database:
        stored = database.evaluation(name)
    judgements: Sequence[Mapping[str, Any]] = stored.document["judgements"] if stored else ()
    return judgements


def of_experiment(
    name: str, db: Path | None, *, imported: Judgements, environ: Mapping[str, str] | None = None
) -> Docket:
    """The queries of a shadow's experiment whose texts were kept, and the memories that were answered.

    Raises SpeckitError: E010 without a store or a record, E030 for an unknown id, E125 when no text was kept.
    """
    environ = os.environ if environ is None else environ
    config = settings(db, environ=environ)
    with EvaluationDatabase.open(evaluation_file(config.db), create=False) as database:
        pairs, judgements = database.pairs(experiment=name), database.judgements("judged")
        variants = max(1, database.variants())
    if not pairs:
        raise SpeckitError(
            "E030", f"no experiment has the id '{name}'", actions=("see `speckit-memory shadow report`",)
        )
    if any(pair.variant.mode == "interleaved" for pair in pairs):
        message = f"the answers of experiment '{name}' were mixed: what readers choose of them decides, no judge"
        raise SpeckitError("E030", message, actions=("see `speckit-memory shadow report`", "leave out `interleave`"))
    texted = [question for question in distinct(answered(pairs)) if question[0].query.question]
    if not texted:
        message = f"of {len(pairs):,} queries no text was kept, and a judge must read them"
        flag = pairs[0].variant.flag
        chosen = f"--flag {flag}" if flag else "--pipeline CONTROL --pipeline VARIANT"
        measured = f"measure without a judge, on queries made of the memories: `eval compare --own {chosen}`"
        actions = ("switch texts on and ask on", measured)
        raise SpeckitError("E125", message, hint=TEXTS_HINT, actions=actions)
    with Memory.open(config.db, "bm25", root=config.root, environ=environ, create=False, shadows=False) as memory:
        own = own_documents(memory)
    keys = {one.memory: one.document.key for one in own}
    ids = {key: memory for memory, key in keys.items()}
    earlier: dict[str, dict[str, float]] = {query: dict(grades) for query, grades in imported.items()}
    for one in judgements:
        if one.memory in keys:
            earlier.setdefault(one.query, {})[keys[one.memory]] = float(one.grade)
    cases = tuple(
        Case(pair.query.id, str((pair.query.question or {}).get("text", "")), _named(pair.control.memories, keys),
             _named(pair.variant.answer.memories, keys),
             {key: grade for one in (pair, *again) for key, grade in earlier.get(one.query.id, {}).items()})
        for pair, *again in texted
    )  # fmt: skip

    def keep(labels: Sequence[Label], by: str) -> None:
        at = time.time()
        with EvaluationDatabase.open(evaluation_file(config.db)) as database:
            database.judge(Judgement(one.query, ids[one.key], one.grade, "judged", by, at) for one in labels)

    documents = {one.document.key: (one.document.title, one.document.text) for one in own}
    return Docket(cases, documents, keep, live=True, variants=variants)


def _named(memories: Sequence[int], keys: Mapping[int, str]) -> tuple[str, ...]:
    """The keys of the memories that are still there."""
    return tuple(keys[memory] for memory in memories if memory in keys)
