"""Steps that cache their answers, for pipelines that differ in a few parameters and answer the same questions.

The steps of the candidates stage are pure functions of their parameters, the question with its plan, and the store.
While only fusion, reranking or another channel changes, their earlier answers stay valid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from speckit_memory.pipeline.model.columns import Hits, Plan, Query
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.roles.contracts import Channel, Understander

KEPT = 4
"""Number of most recently used configurations whose answers are kept per component."""

Answers = dict[tuple[str, int], Any]
"""Answers by question, which includes the plan, and limit."""


class CachedChannel:
    """A channel that caches its answers; all are from one state of one store."""

    def __init__(self, channel: Channel, answers: Answers) -> None:
        self._channel = channel
        self._answers = answers

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        """The channel's answer, from the cache if it has answered this question before."""
        key = repr(query), limit
        if key not in self._answers:
            self._answers[key] = self._channel.search(query, limit, store)
        found: Hits | Unavailable = self._answers[key]
        return found


class CachedUnderstander:
    """A step of query understanding that caches its answers, like `CachedChannel`."""

    def __init__(self, understander: Understander, answers: Answers) -> None:
        self._understander = understander
        self._answers = answers

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """The step's answer, from the cache if it has answered this question before."""
        key = repr((query, plan)), 0
        if key not in self._answers:
            self._answers[key] = self._understander.understand(query, plan, store)
        found: Plan | Unavailable = self._answers[key]
        return found


class StepCache:
    """The cached answers of the steps of many pipelines over one state of one store."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Answers]] = {}

    def caching(self, pipeline: Pipeline) -> Pipeline:
        """The same pipeline, with steps that share cached answers with steps of the same configuration."""
        stage = pipeline.candidates
        understand = (replace(s, component=CachedUnderstander(s.component, self._by(s))) for s in stage.understand)
        channels = (replace(s, component=CachedChannel(s.component, self._by(s))) for s in stage.channels)
        return replace(pipeline, candidates=replace(stage, understand=tuple(understand), channels=tuple(channels)))

    def _by(self, step: BoundStep[object]) -> Answers:
        """The cached answers of a step's configuration. Channels of one component with equal parameters share them."""
        kept = self._of.setdefault(step.use, {})
        configuration = step.params.model_dump_json()
        kept[configuration] = kept.pop(configuration, {})  # move to the end: evicted last
        for forgotten in list(kept)[:-KEPT]:
            del kept[forgotten]
        return kept[configuration]
