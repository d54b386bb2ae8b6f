"""Asks the queries of one dataset through many pipelines that differ in scoring parameters.

The steps of the candidates stage are pure functions of their parameters, the question with its plan, and the store, so
their answers are cached: while only fusion, reranking or another channel changes, the earlier ones stay valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.statistics.folds import Rows
from speckit_memory.evaluation.statistics.metrics import DEPTH, evaluate, without_pinned
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.model.columns import Hits, Plan, Query
from speckit_memory.pipeline.ports import Column, Ids, Store, Unavailable
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner

KEPT = 4
"""Number of most recently used configurations whose answers are kept per component."""

Answers = dict[tuple[str, int], Any]
"""Answers by question, which includes the plan, and limit."""


class CachedStep:
    """A channel, or a step of query understanding, that caches its answers; all are from one state of one store."""

    def __init__(self, component: Any, answers: Answers) -> None:
        self._component = component
        self._answers = answers

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        """The channel's answer, from the cache if it has answered this question before."""
        found: Hits | Unavailable = self._known(
            (repr(query), limit), partial(self._component.search, query, limit, store)
        )
        return found

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """The step's answer, from the cache if it has answered this question before."""
        ask = partial(self._component.understand, query, plan, store)
        found: Plan | Unavailable = self._known((repr((query, plan)), 0), ask)
        return found

    def _known(self, key: tuple[str, int], ask: Callable[[], Any]) -> Any:
        if key not in self._answers:
            self._answers[key] = ask()
        return self._answers[key]


class StepCache:
    """The cached answers of the steps of many pipelines over one state of one store."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Answers]] = {}

    def caching(self, pipeline: Pipeline) -> Pipeline:
        """The same pipeline, with steps that share cached answers with steps of the same configuration."""
        stage = pipeline.candidates
        understand = (replace(s, component=CachedStep(s.component, self._by(s))) for s in stage.understand)
        channels = (replace(s, component=CachedStep(s.component, self._by(s))) for s in stage.channels)
        return replace(pipeline, candidates=replace(stage, understand=tuple(understand), channels=tuple(channels)))

    def _by(self, step: BoundStep[object]) -> Answers:
        """The cached answers of a step's configuration. Channels of one component with equal parameters share them."""
        kept = self._of.setdefault(step.use, {})
        configuration = step.params.model_dump_json()
        kept[configuration] = kept.pop(configuration, {})  # move to the end: evicted last
        for forgotten in list(kept)[:-KEPT]:
            del kept[forgotten]
        return kept[configuration]


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
