"""Collects the pairs to be judged: from a dataset asked through two pipelines, or from a recorded experiment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.trec import Judgements
from speckit_memory.evaluation.experiments.experiment_figures import answered_pairs
from speckit_memory.evaluation.experiments.flag_evidence import LIVE
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.ground_truth.own import TEXTS_HINT
from speckit_memory.evaluation.ground_truth.own_queries import own_documents
from speckit_memory.evaluation.judging.session import SEED, JudgingCase, Label
from speckit_memory.evaluation.measuring.measure import OnMeasured, measure
from speckit_memory.evaluation.running.run import load_pipelines
from speckit_memory.evaluation.statistics.distinct_queries import distinct
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file, read_if_there
from speckit_memory.memory.store.evaluation.records import QueryJudgement
from speckit_memory.pipeline.configuration.loading import PipelineSource


def pair_of(question: str, title: str, text: str) -> str:
    """Identifies a pair of a question and a document: a digest of the text that a judge reads."""
    # 32 hexadecimal digits are the first 128 bits of the digest.
    return sha256("\0".join((question, title, text)).encode()).hexdigest()[:32]


def lists_of(question: str, first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]) -> str:
    """Identifies a question and two ordered lists of titles and texts that answer it."""
    # "\1" separates the lists: moving a document from one to the other gives another digest.
    shown = (question, *(f"{title}\0{text}" for title, text in first), "\1", *(f"{one}\0{two}" for one, two in second))
    return sha256("\0\0".join(shown).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class JudgementList:
    """A list of labels next to a store, each stored at once. Without a store nothing is stored."""

    name: str
    store: Path | None

    def grades(self) -> Mapping[str, float]:
        """The grades by pair."""
        if self.store is None:
            return {}
        return read_if_there(self.store, lambda database: database.labels(self.name)) or {}

    def put(self, grades: Mapping[str, float], by: str) -> None:
        """Stores the grades of a judge, by pair."""
        if self.store is not None and grades:
            with EvaluationDatabase.open(evaluation_file(self.store)) as database:
                database.label(self.name, grades, by, time.time())

    def remove(self, pair: str, by: str) -> None:
        """Removes a judge's label of a pair."""
        if self.store is not None:
            with EvaluationDatabase.open(evaluation_file(self.store)) as database:
                database.unlabel(self.name, pair, by)


Shown = tuple[str, str]
"""The title and text of a document."""


@dataclass(frozen=True, slots=True)
class JudgingQueue:
    """The cases to be judged, the documents by key, and functions that store and remove a judge's label.

    `live` cases come from an experiment that continues, one of `variants`. `pipelines` are the names and hashes of
    control and variant; `origin` names the source of the queries.
    """

    cases: tuple[JudgingCase, ...]
    documents: Mapping[str, Shown]
    keep: Callable[[Label, str], None]
    remove: Callable[[Label, str], None]
    pipelines: tuple[tuple[str, str], ...]
    origin: str
    live: bool = False
    variants: int = 1


def of_source(
    source: GroundSource,
    pipelines: Sequence[PipelineSource],
    store: Path | None,
    *,
    labels: JudgementList,
    imported: Judgements,
    imported_from: str = "",
    progress: OnMeasured | None = None,
    environ: Mapping[str, str] | None = None,
) -> JudgingQueue:
    """Collects all queries of a source, judged or not, through two pipelines.

    Known judgements are the source's own, the imported ones, those stored next to `store` by earlier versions, and
    those of the judgement list for the same question and text.

    Args:
        source: Dataset or other source of queries.
        pipelines: The control and the variant.
        store: The store with earlier judgements; None for none.
        labels: The judgement list, which receives the imported judgements and the labels.
        imported: Grades by query id and document key.
        imported_from: The judge recorded for imported grades.
        progress: Called after every indexed document and every search.
        environ: Environment variables; `os.environ` by default.

    Raises:
        SpeckitError: E030 unless there are two pipelines, or with every problem of the pipelines or the source.
    """
    environ = os.environ if environ is None else environ
    if len(pipelines) != 2:
        raise SpeckitError(
            "E030", f"two pipelines are judged; found {len(pipelines)}", actions=("give --pipeline twice",)
        )
    chosen = load_pipelines(pipelines, None, environ)
    ground = source.ground(environ)
    queries, report = ground.dataset.queries, progress or (lambda _: None)
    with ground.opened(ground.dataset, chosen, environ=environ, progress=report) as opened:
        control, variant = measure(opened.memories, queries, now=time.time(), seed=SEED, progress=report)
        pipelines_asked = tuple((one.pipelines.current.name, one.pipelines.current.hash) for one in opened.memories)
    documents = {one.key: (one.title, one.text) for one in ground.documents}
    texts = {query.id: query.text for query in queries}
    earlier: dict[str, dict[str, float]] = {}
    # evaluations of earlier versions had this id
    for one in _earlier_judgements(store, f"j{ground.digest[:11]}"):
        earlier.setdefault(one["query"], {})[one["key"]] = float(one["grade"])
    labels.put(_by_pair(imported, texts, documents), imported_from)
    listed = labels.grades()
    known = [
        {
            **ground.dataset.judgements.get(query.id, {}),
            **imported.get(query.id, {}),
            **earlier.get(query.id, {}),
            **_grades_in_list(listed, query.text, (*a.keys, *b.keys), documents),
        }
        for query, a, b in zip(queries, control, variant, strict=True)
    ]
    cases = tuple(
        JudgingCase(query.id, query.text, tuple(a.ranked(judged)), tuple(b.ranked(judged)), judged)
        for query, a, b, judged in zip(queries, control, variant, known, strict=True)
    )

    def keep(label: Label, by: str) -> None:
        labels.put({pair_of(texts[label.query], *documents[label.key]): label.grade}, by)

    def remove(label: Label, by: str) -> None:
        labels.remove(pair_of(texts[label.query], *documents[label.key]), by)

    return JudgingQueue(cases, documents, keep, remove, pipelines_asked, ground.dataset.name)


def _grades_in_list(
    known: Mapping[str, float], question: str, keys: Sequence[str], documents: Mapping[str, Shown]
) -> dict[str, float]:
    """The grades that a judgement list has for a question and these documents."""
    if not known:
        return {}
    pairs = {key: pair_of(question, *documents[key]) for key in keys if key in documents}
    return {key: known[pair] for key, pair in pairs.items() if pair in known}


def _by_pair(judgements: Judgements, texts: Mapping[str, str], documents: Mapping[str, Shown]) -> dict[str, float]:
    """The judgements of known queries and documents, keyed as in a judgement list."""
    return {
        pair_of(texts[query], *documents[key]): grade
        for query, grades in judgements.items()
        if query in texts
        for key, grade in grades.items()
        if key in documents
    }


def _earlier_judgements(store: Path | None, name: str) -> Sequence[Mapping[str, Any]]:
    """The earlier judgements of a dataset with their judges, in order."""
    stored = None if store is None else read_if_there(store, lambda database: database.evaluation(name))
    judgements: Sequence[Mapping[str, Any]] = stored.document["judgements"] if stored else ()
    return judgements


def of_experiment(
    name: str,
    db: Path | str | None,
    *,
    labels: JudgementList,
    imported: Judgements,
    imported_from: str = "",
    environ: Mapping[str, str] | None = None,
) -> JudgingQueue:
    """Collects the queries of an experiment whose texts are stored, with the memories of their answers.

    Args:
        name: The id of the experiment.
        db: The store; None for the configured one.
        labels: The judgement list. Its grades become judgements; it receives the imported ones and the labels.
        imported: Grades by query id and memory key.
        imported_from: The judge recorded for imported grades.
        environ: Environment variables; `os.environ` by default.

    Raises:
        SpeckitError: E010 without a store or record, E030 for an unknown id or mixed answers, E125 without texts.
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
        message = f"the answers of experiment '{name}' were mixed: the uses of their memories decide, not a judge"
        raise SpeckitError("E030", message, actions=("see `speckit-memory shadow report`", "leave out `interleave`"))
    texted = [question for question in distinct(answered_pairs(pairs)) if question[0].query.question]
    if not texted:
        message = f"no text of the {len(pairs):,} queries was kept, and a judge must read it"
        flag = pairs[0].variant.flag
        chosen = f"--flag {flag}" if flag else "--pipeline CONTROL --pipeline VARIANT"
        measured = f"measure without a judge, on queries made of the memories: `eval compare --own {chosen}`"
        actions = ("keep texts and go on asking", measured)
        raise SpeckitError("E125", message, hint=TEXTS_HINT, actions=actions)
    with Memory.open(config.db, "bm25", root=config.root, environ=environ, create=False, shadows=False) as memory:
        own = own_documents(memory)
    keys = {one.memory: one.document.key for one in own}
    ids = {key: memory for memory, key in keys.items()}
    documents = {one.document.key: (one.document.title, one.document.text) for one in own}
    texts = {pair.query.id: str((pair.query.question or {}).get("text", "")) for pair, *_ in texted}
    labels.put(_by_pair(imported, texts, documents), imported_from)
    known = labels.grades()
    earlier: dict[str, dict[str, float]] = {query: dict(grades) for query, grades in imported.items()}
    for one in judgements:
        if one.memory in keys:
            earlier.setdefault(one.query, {})[keys[one.memory]] = float(one.grade)
    reused: list[QueryJudgement] = []
    for pair, *_ in texted:
        shown = _existing_keys((*pair.control.memories, *pair.variant.answer.memories), keys)
        for key, grade in _grades_in_list(known, texts[pair.query.id], shown, documents).items():
            # the experiment's own judgements take precedence over the list
            if key not in earlier.setdefault(pair.query.id, {}):
                earlier[pair.query.id][key] = grade
                by = f"list {labels.name}"
                reused.append(QueryJudgement(pair.query.id, ids[key], round(grade), "judged", by, time.time()))
    if reused and labels.store is not None:
        with EvaluationDatabase.open(evaluation_file(config.db)) as database:
            database.judge(reused)
    cases = tuple(
        JudgingCase(
            pair.query.id,
            str((pair.query.question or {}).get("text", "")),
            _existing_keys(pair.control.memories, keys),
            _existing_keys(pair.variant.answer.memories, keys),
            {key: grade for one in (pair, *again) for key, grade in earlier.get(one.query.id, {}).items()},
        )
        for pair, *again in texted
    )

    def keep(label: Label, by: str) -> None:
        if labels.store is None:
            return
        labels.put({pair_of(texts[label.query], *documents[label.key]): label.grade}, by)
        with EvaluationDatabase.open(evaluation_file(config.db)) as database:
            database.judge([QueryJudgement(label.query, ids[label.key], label.grade, "judged", by, time.time())])

    def remove(label: Label, by: str) -> None:
        if labels.store is None:
            return
        labels.remove(pair_of(texts[label.query], *documents[label.key]), by)
        with EvaluationDatabase.open(evaluation_file(config.db)) as database:
            database.take_back(label.query, ids[label.key], by)

    first = pairs[0]
    compared = tuple((one, one) for one in (first.control.pipeline, first.variant.answer.pipeline))
    return JudgingQueue(cases, documents, keep, remove, compared, LIVE, live=True, variants=variants)


def _existing_keys(memories: Sequence[int], keys: Mapping[int, str]) -> tuple[str, ...]:
    """The keys of the memories that still exist."""
    return tuple(keys[memory] for memory in memories if memory in keys)
