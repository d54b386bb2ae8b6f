"""Converts queries and answers to records: ids, figures and features, and texts only if configured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from speckit_memory.engine.answers.request import RecordedRequest, SearchRequest
from speckit_memory.engine.recording.screening import with_texts
from speckit_memory.memory.intake.secrets import redact
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    ChannelSighting,
    PipelineRecord,
    QueryRecord,
    ScoredStep,
    ScoreSample,
    StepCost,
)
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase
from speckit_memory.pipeline.model.columns import NO_RANK, Query
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Outcome

_DIGITS = 16
UNKNOWN_FOLDER = "?"
"""Recorded instead of a folder without memories, whose name could be any text."""
_PRECISION = 9
"""Significant digits of score parts, which are for inspection, not for exact comparison."""


def digest_of(name: str) -> str:
    """A hash that identifies a session or the path of a store; "" for ""."""
    return sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS] if name else ""


def known_folder(query: Query, store: Store) -> str:
    """The folder of a query for its record: only names that exist in the store.

    `UNKNOWN_FOLDER` for a folder without memories, "" for all folders.
    """
    folder = query.wanted.folder
    return folder if not folder or store.attributes.scope(Filter(folder), 0.0).size else UNKNOWN_FOLDER


def query_record(
    query_id: str, query: Query, *, at: float, store: str, state: int, folder: str, asked: RecordedRequest | None = None
) -> QueryRecord:
    """The record of a query.

    Args:
        query_id: The id of the query.
        query: The planned query.
        at: Time of the query in epoch seconds.
        store: The identifier of the store.
        state: The store's change number.
        folder: The result of `known_folder`.
        asked: The question for a replay; None unless texts are recorded.
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
        question=None if asked is None else _replay_parameters(asked.question),
        read_point=None if asked is None else asked.read_point,
        asked=_told_apart(query),
    )


def answer_record(outcome: Outcome, count: int | None = None) -> AnswerRecord:
    """The record of an answer: its first `count` memories (all by default) with their scores."""
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
    """The record that explains a pipeline's hash."""
    return PipelineRecord(pipeline.hash, pipeline.name, pipeline.budgets_ms["shadow"])


def scoring(query_id: str, outcome: Outcome, count: int | None = None, *, at: float) -> ScoreSample:
    """The parts of the scores of the served memories, and their rank in each channel (feature E7).

    Args:
        query_id: The id of the query.
        outcome: The sealed ranking.
        count: How many leading memories were served; None for all.
        at: Epoch seconds.
    """
    pool = outcome.pool
    memories = pool.candidates.parents[:count]
    return ScoreSample(
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


def _sightings(outcome: Outcome, memories: np.ndarray[Any, Any]) -> Mapping[str, tuple[ChannelSighting, ...]]:
    """The served memories that each channel returned, best rank first, over all query variants."""
    # candidates.rank, candidates.raw: (n, columns); several columns may belong to one channel
    candidates = outcome.pool.candidates
    found: dict[str, dict[int, ChannelSighting]] = {}
    for column, channel in enumerate(candidates.channels):
        for row, memory in enumerate(memories.tolist()):
            rank = int(candidates.rank[row, column])
            known = found.setdefault(channel, {}).get(memory)
            if rank != NO_RANK and (known is None or rank < known.rank):
                found[channel][memory] = ChannelSighting(memory, rank, float(candidates.raw[row, column]))
    return {
        channel: tuple(sorted(seen.values(), key=lambda one: (one.rank, one.memory)))
        for channel, seen in found.items()
        if seen
    }


# column: (n,) float64; rounding to nine digits shortens the stored text.
def _short(column: np.ndarray[Any, Any]) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_PRECISION}g}") for value in column.tolist())


def _told_apart(query: Query) -> str:
    """A key that equal questions share: their words, ignoring case and spacing, and the folder."""
    # Sorted: the order of quoted phrases does not make another question.
    marked = [sorted(map(normalised_phrase, words)) for words in (query.required, query.excluded)]
    return json.dumps([normalised_phrase(query.text), *marked, query.wanted.folder])


def _replay_parameters(question: SearchRequest) -> dict[str, Any]:
    """The non-default parameters of a question, with secrets removed, for a replay.

    The session is left out; the query record has its digest.
    """
    return {
        name: with_texts(list(value) if isinstance(value, tuple) else value, lambda text: redact(text)[0])
        for name, value in question.replayed.items()
    }
