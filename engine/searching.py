"""How one pipeline answers: searches, dry runs, and reasons, with hand-overs first where these are asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property

from speckit_memory.config.settings import Settings
from speckit_memory.engine import assembly, resuming
from speckit_memory.engine.answer import answer
from speckit_memory.engine.empty_answers import EMPTY_STORE
from speckit_memory.engine.plans import PlanReport, plan_report
from speckit_memory.engine.questions import Question
from speckit_memory.engine.results import SearchResult
from speckit_memory.engine.why_not import why_not
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.builder import build
from speckit_memory.pipeline.clock import opening, opening_ns, query_ns
from speckit_memory.pipeline.loading import PipelineSource
from speckit_memory.pipeline.model import Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.registry import Registry
from speckit_memory.pipeline.runner import Runner
from speckit_memory.pipeline.view import StoreView


class Searching:
    """A pipeline, and beside it the preset that answers in the mode "resume"."""

    def __init__(self, runner: Runner, config: Settings) -> None:
        self.runner = runner
        self._config = config

    @classmethod
    def through(
        cls, pipeline: PipelineSource, config: Settings, overrides: Mapping[str, str] | None, *, strict: bool
    ) -> Searching:
        """With this pipeline. Raises SpeckitError with all that is wrong with it."""
        built = build(pipeline, _registry(config), config.environ_of_root, overrides)
        return cls(Runner(built, strict=strict), config)

    @cached_property
    def _handovers(self) -> Runner:
        built = build(resuming.PIPELINE, _registry(self._config), self._config.environ_of_root)
        return Runner(built, strict=self.runner.strict)

    def search(
        self,
        opened: assembly.OpenStore,
        question: Question,
        *,
        now: float,
        allowed_ms: float | None,
        snippet: int,
        content: bool,
    ) -> SearchResult:
        """The answer of a store to a question asked at `now` (epoch seconds), see `Memory.search`."""
        opened_before = opening_ns()
        with ExitStack() as search:
            with opening():
                store = search.enter_context(opened.read_model.reading())
            deadline_ns = None if allowed_ms is None else query_ns() + int(allowed_ms * 1e6)
            query = question.query(store, now, deadline_ns)
            return self._answered(query, store, snippet, content, opened_before)

    def _answered(self, query: Query, store: Store, snippet: int, content: bool, opened_before: int) -> SearchResult:
        def run(runner: Runner, query: Query) -> SearchResult:
            declared = tuple(channel.id for channel in runner.pipeline.candidates.channels)
            outcome = runner.run(query, store)
            spent = opening_ns() - opened_before
            return answer(outcome, store, declared, snippet, content, spent, runner.pipeline.annotate)

        if not resuming.asks_for_handover(query):
            return run(self.runner, query)
        handovers = run(self._handovers, resuming.of_handovers(query))
        if handovers.results or handovers.why_nothing == EMPTY_STORE:
            return handovers
        latest = resuming.only_asks_to_go_on(query, store)
        result = run(self._handovers if latest else self.runner, query)
        instead = "this was changed last" if latest else "this is what the words find"
        return result.warned(before=[resuming.no_handover(query, instead)])

    def plan(self, opened: assembly.OpenStore, question: Question) -> PlanReport:
        """What a search would do."""
        with opened.read_model.reading() as snapshot:
            store = StoreView(snapshot)
            query = question.query(store, time.time(), None)
            if resuming.asks_for_handover(query):
                return plan_report(self._handovers, resuming.of_handovers(query), store)
            return plan_report(self.runner, query, store)

    def why_not(self, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
        """Why a memory is not in an answer that came from here."""
        runner = self._handovers if resuming.is_of_handovers(result.outcome) else self.runner
        return why_not(runner, result, memory, store)


def _registry(config: Settings) -> Registry:
    return assembly.registry(config.environ, config.root)
