"""Asks the queries of one dataset through many pipelines that differ in scoring parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.measuring.cached_steps import StepCache
from speckit_memory.evaluation.statistics.folds import Rows
from speckit_memory.evaluation.statistics.metrics import DEPTH, evaluate, without_pinned
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.ports import Column, Ids
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner

JudgedQuery = tuple[DatasetQuery, Mapping[str, float]]
"""A query and its judgements by document."""


class JudgedQueries:
    """Judged queries and the store that answers them.

    Work that affects no score is left out: the rows, texts and times of an answer, and the annotators, which see the
    final order. An annotator that hides rows in the pipeline in use is kept.
    """

    def __init__(self, memory: Memory, queries: Sequence[JudgedQuery], now: float) -> None:
        self._store = memory.session.view()
        self._queries = [
            SearchRequest(text=query.text, limit=DEPTH, folder=query.folder, mode=query.mode).query(
                self._store, now, None
            )
            for query, _ in queries
        ]
        self._judgements = [judgements for _, judgements in queries]
        self._answers = StepCache()
        self._hiding = self._hidden_by(memory.pipelines.current)

    def values(self, pipeline: Pipeline, rows: Rows) -> dict[str, Column]:
        """The metrics of a pipeline on the queries at these rows: float64[len(rows)] by metric."""
        annotate = tuple(step for step in pipeline.annotate if step.id in self._hiding)
        found = [outcome.pool.candidates for outcome in self._outcomes(replace(pipeline, annotate=annotate), rows)]
        judgements = [self._judgements[row] for row in rows.tolist()]
        rankings = [self._ranked(one.parents, judged) for one, judged in zip(found, judgements, strict=True)]
        return evaluate(rankings, judgements)

    def _ranked(self, memories: Ids, judgements: Mapping[str, float]) -> list[str]:
        keys = self._store.attributes.label("key", memories)
        pinned = keys[self._store.attributes.label("tier", memories) == Tier.CONSTITUTIONAL]
        return without_pinned(keys.tolist(), frozenset(pinned.tolist()), judgements)

    def _hidden_by(self, pipeline: Pipeline) -> frozenset[str]:
        """The annotators that remove a row from any answer."""
        # run once over all queries, which also fills the cache
        every = self._outcomes(pipeline, np.arange(len(self._queries)))
        notes = [note for outcome in every for note in outcome.notes.items()]
        return frozenset(step for step, said in notes if said.keep is not None and not said.keep.all())

    def _outcomes(self, pipeline: Pipeline, rows: Rows) -> Iterator[Outcome]:
        runner = Runner(self._answers.caching(pipeline))
        return (runner.run(self._queries[row], self._store) for row in rows.tolist())
