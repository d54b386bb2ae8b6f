"""A query and its answer as they are noted: ids, figures and features, no text unless it is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any

import numpy as np

from speckit_memory.engine.answers.request import Asked, Question
from speckit_memory.engine.recording.screening import with_texts
from speckit_memory.memory.intake.secrets import redact
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    PipelineRecord,
    QueryRecord,
    ScoredStep,
    Scoring,
    Sighting,
    StepCost,
)
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase
from speckit_memory.pipeline.model.columns import NO_RANK, Query
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Outcome

_DIGITS = 16
UNKNOWN_FOLDER = "?"
"""Stands for a folder that is not there: its name may be anything."""
_PRECISION = 9
"""Significant digits of the parts of scores, which are looked at and not compared bit by bit."""


def digest_of(name: str) -> str:
    """What stands for the name of a session, or for the place of a store; "" for none."""
    return sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS] if name else ""


def known_folder(query: Query, store: Store) -> str:
    """The folder that a query looks into, as it is noted: what the store knows by that name, not what somebody wrote.

    `UNKNOWN_FOLDER` for one in which no memory lies, "" where all are searched.
    """
    folder = query.wanted.folder
    return folder if not folder or store.attributes.scope(Filter(folder), 0.0).size else UNKNOWN_FOLDER


def query_record(
    query_id: str, query: Query, *, at: float, store: str, state: int, folder: str, asked: Asked | None = None
) -> QueryRecord:
    """What is noted of a query that was asked at this moment (epoch seconds); `asked` only where texts are kept.

    `folder` is what `known_folder` says of it.
    """
    plan = query.plan
    return QueryRecord(
        id=query_id,
        at=at,
        intent=plan.intent,
        complexity=plan.complexity,
        folder=folder,
        mode=plan.mode or query.mode,
        limit=query.limit,
        wordings=max(1, len(plan.variants)),
        session=digest_of(query.session),
        store=store,
        state=state,
        question=None if asked is None else _asked(asked.question),
        read_point=None if asked is None else asked.read_point,
        asked=_told_apart(query),
    )


def answer_record(outcome: Outcome, count: int | None = None) -> AnswerRecord:
    """What is noted of an answer: its first `count` memories, all unless given, with their scores."""
    pool, trace = outcome.pool, outcome.trace
    return AnswerRecord(
        pipeline=trace.config_hash,
        memories=tuple(pool.candidates.parents[:count].tolist()),
        scores=tuple(pool.score[:count].tolist()) if len(pool) else (),
        total_ms=trace.total_ns / 1e6,
        steps=tuple(
            StepCost(record.stage, record.step, record.ns / 1e6, record.n_in, record.n_out, record.state)
            for record in trace.steps
        ),
    )


def pipeline_record(pipeline: Pipeline) -> PipelineRecord:
    """What the hash of a pipeline stands for."""
    return PipelineRecord(pipeline.hash, pipeline.name, pipeline.budgets_ms["shadow"])


def scoring(query_id: str, outcome: Outcome, count: int | None = None, *, at: float) -> Scoring:
    """How the served memories got their scores, part by part, and where each channel saw them (feature E7)."""
    pool = outcome.pool
    memories = pool.candidates.parents[:count]
    return Scoring(
        query=query_id,
        pipeline=outcome.trace.config_hash,
        at=at,
        memories=tuple(memories.tolist()),
        steps=tuple(
            ScoredStep(
                step.step, step.kind, step.names, tuple(map(_short, step.parts[:count])), _short(step.after[:count])
            )
            for step in pool.steps
        ),
        channels=_sightings(outcome, memories),
    )


def _sightings(outcome: Outcome, memories: np.ndarray[Any, Any]) -> Mapping[str, tuple[Sighting, ...]]:
    """Of each channel, the served memories that it returned, best rank first, over all wordings of the query."""
    candidates = outcome.pool.candidates
    found: dict[str, dict[int, Sighting]] = {}
    for column, channel in enumerate(candidates.channels):
        for row, memory in enumerate(memories.tolist()):
            rank = int(candidates.rank[row, column])
            known = found.setdefault(channel, {}).get(memory)
            if rank != NO_RANK and (known is None or rank < known.rank):
                found[channel][memory] = Sighting(memory, rank, float(candidates.raw[row, column]))
    return {
        channel: tuple(sorted(seen.values(), key=lambda one: (one.rank, one.memory)))
        for channel, seen in found.items()
        if seen
    }


def _short(column: np.ndarray[Any, Any]) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_PRECISION}g}") for value in column.tolist())


def _told_apart(query: Query) -> str:
    """What one question has in common with itself when it is asked again: its words, in whatever case and spacing, and
    the folder it looks into."""
    marked = [sorted(map(normalised_phrase, words)) for words in (query.required, query.excluded)]
    return json.dumps([normalised_phrase(query.text), *marked, query.wanted.folder])


def _asked(question: Question) -> dict[str, Any]:
    """What a question says beyond the defaults, but for secrets: what asks it again. The session is left out, of which
    the query has a digest."""
    values = {field.name: (getattr(question, field.name), field.default) for field in fields(question)}
    return {
        name: with_texts(list(value) if isinstance(value, tuple) else value, lambda text: redact(text)[0])
        for name, (value, default) in values.items()
        if value != default and name != "session"
    }
