"""Logged queries asked again of two pipelines, one right after the other: what a change would have done to them."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from speckit_memory.config.settings import EVALUATION_VARIABLE, settings
from speckit_memory.engine import Memory
from speckit_memory.engine.observed import answer_record, pipeline_record
from speckit_memory.engine.results import SearchResult
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.compare import with_and_without
from speckit_memory.evaluation.comparing.keeping import NOT_WANTED, not_kept
from speckit_memory.evaluation.comparing.parting import parted_at
from speckit_memory.evaluation.experiment import judge_experiment
from speckit_memory.evaluation.experiment_sentence import names
from speckit_memory.evaluation.experiments import Judged, known_judgements
from speckit_memory.evaluation.flag_evidence import OfExperiment
from speckit_memory.evaluation.kept_evidence import written
from speckit_memory.evaluation.metrics import evaluate, relevant
from speckit_memory.evaluation.run import loaded
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Experiment,
    Pair,
    PipelineRecord,
    QueryRecord,
    Snapshot,
    StoredEvaluation,
    UseRecord,
    VariantRecord,
)
from speckit_memory.pipeline.loading import PipelineSource

KIND = "eval replay"
SEED = 20
_ADVICE = re.compile(r" \(`eval judge [^`]*` asks for them\)")
WARM_UPS = 3
"""So many queries are asked before anything is timed: the first ones read what later ones have in memory."""
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What asking again has shown. `without_text` further queries of that time cannot be asked again, and
    `served_by_others` of those asked were once answered by another pipeline than the control.

    `keeping` tells where it is kept, or why it is not, and `is_kept` whether its id can be cited.
    """

    judged: Judged
    store: Path
    log: Path
    without_text: int
    served_by_others: int
    keeping: str = NOT_WANTED
    is_kept: bool = False

    def as_json(self) -> dict[str, Any]:
        """The document of `eval replay --json`."""
        return {
            "kind": KIND,
            "store": str(self.store),
            "log": str(self.log),
            "without_text": self.without_text,
            "served_by_others": self.served_by_others,
            **self.judged.report.as_json(),
            **({} if self.is_kept else {"id": None}),
            "keeping": self.keeping,
        }


def replay(
    log: Path,
    store: Path,
    pipeline: str = "",
    against: str = "",
    *,
    flag: str = "",
    since: float | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: OnProgress | None = None,
    keep: bool = True,
) -> Replayed:
    """Asks the queries noted in `log` again in `store`, through a pipeline and through `against` ("" for the one in
    force), in a shuffled order that is always the same, and keeps what came of it in `log`.

    The control is asked twice, which shows the noise. Every question is asked as of the moment when it was asked first,
    and nothing is written to the store. `overrides` change single values of the pipeline. With a `flag` in its place
    the control is asked with that closed, and beside it with it open: evidence for the flag's promotion. Raises E030
    when no question is kept, E120 for a flag that no step waits for, and as opening the two files does.
    """
    if not log.exists():
        raise _nothing_to_ask(f"{log} does not exist")
    with EvaluationDatabase.open(log, create=False) as database:
        logged, uses, judgements = database.served(since), database.uses(since), known_judgements(database)
    asked = [seen for seen in logged if seen.query.question]
    if not asked:
        held = f"{len(logged):,} queries, all without their texts" if logged else "no query of that time"
        raise _nothing_to_ask(f"{log} holds {held}")
    environ = {**os.environ, EVALUATION_VARIABLE: "off"}  # what is asked again is no new question
    sources: tuple[PipelineSource | None, PipelineSource] = (against or None, pipeline)
    if flag:
        [whole] = loaded([against or settings(store, environ=environ).pipeline], None, environ)
        closed, [opened] = with_and_without(whole, [flag])
        sources = closed, opened
    with (
        Memory.open(store, sources[0], create=False, environ=environ) as control,
        control.using(sources[1], overrides) as variant,
    ):
        pairs, noise = _asked_again([seen.query for seen in asked], control, variant, progress)
        hashes = control.pipeline, variant.pipeline
    ids = {pair.query.id for pair in pairs}
    known = {query: grades for query, grades in judgements.items() if query in ids}
    seen = tuple(use for use in uses if use.query in ids)
    found = _judged(pairs, noise, known, seen, (pipeline_record(hashes[0]), pipeline_record(hashes[1])), flag)
    others = sum(seen.control.pipeline != hashes[0].hash for seen in asked)
    result = Replayed(found, store, log, len(logged) - len(asked), others)
    return _kept(result) if keep else result


def _asked_again(
    queries: Sequence[QueryRecord], control: Memory, variant: Memory, progress: OnProgress | None
) -> tuple[list[Pair], list[Pair]]:
    """Pairs of control and variant, and of the control with itself. Which of the three comes first is drawn by lot."""
    chance = random.Random(SEED)
    for query in queries[:WARM_UPS]:
        for memory in (control, variant):
            _answer(memory, query)
    pairs, noise = [], []
    order = chance.sample(range(len(queries)), len(queries))
    for done, place in enumerate(order, 1):
        query = queries[place]
        answers: dict[str, tuple[AnswerRecord, SearchResult | None]] = {}
        for name in chance.sample(["control", "variant", "again"], 3):
            answers[name] = _answer(variant if name == "variant" else control, query)
        (first, served), (other, beside), (second, _) = (answers[name] for name in ("control", "variant", "again"))
        parted = parted_at(served.outcome, beside.outcome) if served and beside else ""
        pairs.append(Pair(query, first, VariantRecord("shadow", other, parted_at=parted, spent_ms=other.total_ms)))
        noise.append(Pair(query, first, VariantRecord("shadow", second, spent_ms=second.total_ms)))
        if progress is not None:
            progress(done, len(queries))
    return pairs, noise


def _answer(memory: Memory, query: QueryRecord) -> tuple[AnswerRecord, SearchResult | None]:
    try:
        result = memory.search(**dict(query.question or {}), now=query.at, deadline_ms=None, snippet=0)
    except SpeckitError as error:  # as with a live variant, the kind of a failure is kept and its words are not
        return AnswerRecord(memory.pipeline.hash, failure=error.code), None
    return replace(answer_record(result.outcome), pipeline=memory.pipeline.hash), result


def _judged(
    pairs: Sequence[Pair],
    noise: Sequence[Pair],
    judgements: Mapping[str, Mapping[int, float]],
    uses: tuple[UseRecord, ...],
    pipelines: tuple[PipelineRecord, PipelineRecord],
    flag: str,
) -> Judged:
    control, variant = pipelines
    moments = [pair.query.at for pair in pairs]
    failed = sum(bool(pair.variant.answer.failure) for pair in pairs)
    experiment = Experiment(control, variant, "shadow", flag, min(moments), max(moments), len(pairs), failed)
    report = judge_experiment(pairs, experiment=experiment, judgements=judgements, uses=uses, noise=noise)
    # what was asked live and what was asked again are two experiments, and only the live one can be judged by hand
    name = sha256(f"replay:{control.hash}:{variant.hash}".encode()).hexdigest()[:12]
    told = _ADVICE.sub("", report.sentence)
    return Judged(replace(report, id=name, sentence=told), tuple(pairs), judgements, uses)


def _kept(result: Replayed) -> Replayed:
    """The same, kept beside the queries, or with the reason why that could not be done."""
    report, asked = result.judged.report, sorted(pair.query.id for pair in result.judged.pairs)
    digest = sha256("\n".join(asked).encode()).hexdigest()[:12]
    name = f"{len(asked)} logged queries"
    document = {
        **replace(result, is_kept=True).as_json(),
        **written(report, OfExperiment(result.judged)),
        "per_query": _per_query(result.judged),
    }
    stored = StoredEvaluation(report.id, KIND, time.time(), name, digest, document)
    figures = []
    if (agreement := report.agreement) is not None:
        means = {"overlap@10": agreement.overlap_10, "kendall_tau_b": agreement.kendall_tau_b, "rbo": agreement.rbo}
        figures = [Snapshot(report.variant.hash, name, one.mean, one.n) for name, one in means.items() if one]
    try:
        with EvaluationDatabase.open(result.log) as database:
            database.keep(stored, figures)
    except SpeckitError as error:
        return replace(result, keeping=not_kept(error))
    return replace(result, keeping=f"kept as {report.id} in {result.log}", is_kept=True)


def _per_query(judged: Judged) -> dict[str, Any]:
    """The queries that both answered, with each one's time and metrics by pipeline; None where nothing relevant is
    known of a query."""
    pairs, report = judged.answered(), judged.report
    known = [{str(memory): grade for memory, grade in judged.judgements.get(one.query.id, {}).items()} for one in pairs]
    told = [place for place, grades in enumerate(known) if relevant(grades)]
    sides = zip(
        names(report.control, report.variant, report.flag),
        ([pair.control for pair in pairs], [pair.variant.answer for pair in pairs]),
        strict=True,
    )
    times: dict[str, list[float]] = {}
    values: dict[str, dict[str, list[float | None]]] = {}
    for name, answers in sides:
        times[name] = [answer.total_ms for answer in answers]
        rankings = [[str(memory) for memory in answers[place].memories] for place in told]
        measured = evaluate(rankings, [known[place] for place in told]) if told else {}
        values[name] = {
            metric: [by_place.get(place) for place in range(len(pairs))]
            for metric, column in measured.items()
            if (by_place := dict(zip(told, column.tolist(), strict=True)))
        }
    return {"queries": [one.query.id for one in pairs], "ms": times, "values": values}


def _nothing_to_ask(why: str) -> SpeckitError:
    return SpeckitError(
        "E030",
        f"there is nothing to ask again: {why}",
        hint="What was asked is kept only where the workspace says so, from then on.",
        actions=("write `evaluation: {texts: true}` into .speckit/config.yaml and go on asking", "leave out --since"),
    )
