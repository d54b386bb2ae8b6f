"""How one pipeline answers: searches, dry runs, and reasons, with hand-overs first where these are asked for."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock

from speckit_memory.config.flags.flags import misspelt_variables
from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.extensions import ExtensionSettings, extensions_in_force
from speckit_memory.config.workspace.settings import SHIPPED, Settings
from speckit_memory.engine import components
from speckit_memory.engine.answers import resume
from speckit_memory.engine.answers.answer import answer, named
from speckit_memory.engine.answers.request import Asked, Question
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.search_options import NOTHING, Adjustment, adjusted
from speckit_memory.engine.answers.why_not import why_not
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.search.plans import PlanReport, plan_report
from speckit_memory.engine.search.rollout import RolledOut
from speckit_memory.engine.shadowing.search import Search, Shown
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.models.embedders.counting import counted_tokens
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import answered_by_lists
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.builder import Checked, assemble, build, examine, examined
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant, checked_variants
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.configuration.rollouts import Rollout, rollouts
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.clock import opening, opening_ns, query_ns
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.registry import Registry
from speckit_memory.pipeline.running.runner import Outcome, Runner
from speckit_memory.pipeline.running.view import StoreView

APPROXIMATE = ("vectors_from", "lists")
"""The fact about an answer that rests on the index of vectors."""
_NO_SESSION = "no session is named: what one attended to raises nothing"


class Searching:
    """A pipeline with its variants, and beside it the preset that answers in the mode "resume"."""

    def __init__(
        self,
        runner: Runner,
        config: Settings,
        variants: tuple[CheckedVariant, ...] = (),
        checked: Checked | None = None,
        rollouts: tuple[Rollout, ...] = (),
        unusable: tuple[Problem, ...] = (),
        extensions: ExtensionSettings | None = None,
    ) -> None:
        """`checked` is what the pipeline was made of, None for one that was put together of objects.

        `rollouts` answer the sessions for which flags are enabled, `runner` all others. `unusable` is what is wrong
        with variants that are asked for and do not run. `extensions` is how these run, found out unless it is given.
        """
        self.runner = runner
        self._rolled_out = RolledOut(rollouts, strict=runner.strict)
        self.variants = variants
        self.config = config
        self.checked = checked
        self.unusable = unusable
        self._rollouts = rollouts
        self._extensions = extensions
        self._wishes = Wishes()
        self.stands_in_for: tuple[Problem, ...] = ()

    @classmethod
    def through(
        cls,
        pipeline: PipelineSource,
        config: Settings,
        overrides: Mapping[str, str] | None,
        *,
        strict: bool,
        extensions: ExtensionSettings | None = None,
    ) -> Searching:
        """With this pipeline. Raises SpeckitError with all that is wrong with it and with what it asks for beside it.

        What is wrong with a variant itself keeps that from running and nothing else: every answer warns of it.
        """
        extensions = extensions or extensions_in_force(config.environ, config.root)
        registry = components.registry_of(extensions)
        checked = examine(pipeline, registry, config.environ_of_root, overrides)
        variants, problems, unusable = checked_variants(checked, registry, config.environ_of_root)
        shares, misrolled = rollouts(checked, registry)
        if problems or checked.problems or misrolled:
            raise SpeckitError.of([*checked.problems, *problems, *unusable, *misrolled])
        running = tuple(one for one in variants if not one.checked.problems)
        runner = Runner(assemble(checked), strict=strict)
        return cls(runner, config, running, checked, shares, tuple(unusable), extensions)

    @classmethod
    def shipped(cls, config: Settings, wrong: tuple[Problem, ...], *, strict: bool) -> Searching:
        """With the shipped pipeline as it is, whatever files and the environment say of pipelines and flags: it stands
        in for one that has these problems."""
        undecided = replace(config, pipeline=DEFAULT, pipeline_by=SHIPPED, root=Path(os.devnull), environ={})
        extensions = extensions_in_force(config.environ, config.root)
        searching = cls.through(DEFAULT, undecided, None, strict=strict, extensions=extensions)
        searching.stands_in_for = wrong
        return searching

    @cached_property
    def extensions(self) -> ExtensionSettings:
        """How installed extensions run for it, whatever files say by now."""
        return self._extensions or extensions_in_force(self.config.environ, self.config.root)

    @property
    def registry(self) -> Registry:
        """The components that its steps are of."""
        return components.registry_of(self.extensions)

    @property
    def beside(self) -> tuple[object, ...]:
        """Equal for two that have the same run beside the same pipeline."""
        pipeline = self.runner.pipeline
        variants = (
            (one.variant.name, one.variant.mode, one.variant.sample, one.variant.interleave, one.checked.hash)
            for one in self.variants
        )
        return (pipeline.name, pipeline.hash, *variants)

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for two that answer alike, and say the same beside their answers."""
        shares = ((one.percent, one.checked.hash) for one in self._rollouts)
        return (self.beside, *shares, *self.unusable)

    def changed(self, whole: Effective) -> Searching:
        """The same through another pipeline, with nothing beside it. Raises SpeckitError with all that is wrong."""
        return self.through_checked(examined(whole, self.registry))

    def through_checked(self, checked: Checked) -> Searching:
        """The same through a pipeline that was examined, with nothing beside it. Raises as `changed` does."""
        if checked.problems:
            raise SpeckitError.of(checked.problems)
        runner = Runner(assemble(checked), strict=self.runner.strict)
        return Searching(runner, self.config, checked=checked, extensions=self._extensions)

    def wished(self, wanted: Adjustment, session: str = "") -> Wished:
        """Who answers what a session wants so. What is wanted changes the pipeline that answers the session.

        Raises E030 for a pipeline that was put together of objects, and for values that are not accepted.
        """
        return self._wishes.of(self, self._rolled_out.checked(session, self.config.db) or self.checked, wanted)

    def adjusted(self, wanted: Adjustment, session: str = "") -> Searching:
        """The same as a single search wants it: itself, where the pipeline does that as it is. Raises as `wished`."""
        return self.wished(wanted, session).searching

    def runner_for(self, session: str) -> Runner:
        """The one that answers a session, the same in every process; "" for questions without a session."""
        return self._rolled_out.runner(session, self.config.db) or self.runner

    @cached_property
    def _amiss(self) -> tuple[str, ...]:
        """What was asked for and does not run beside, and what the environment was most likely to decide on this
        pipeline, and does not."""
        flags = self.checked.effective.flags if self.checked else {}
        idle = tuple(f"a pipeline does not run beside this one: {problem}" for problem in self.unusable)
        if not flags:
            return idle
        return (*idle, *misspelt_variables(self.config.environ, flags, self.registry.flag_files))

    @cached_property
    def _handovers(self) -> Runner:
        built = build(resume.PIPELINE, self.registry, self.config.environ_of_root)
        return Runner(built, strict=self.runner.strict)

    def search(
        self,
        opened: OpenStore,
        question: Question,
        *,
        now: float,
        allowed_ms: float | None,
        snippet: int,
        content: bool,
        watched: Search | None = None,
        wished: Wished | None = None,
    ) -> SearchResult:
        """The answer of a store to a question asked at `now` (epoch seconds), see `Memory.search`.

        `watched` is told of what the pipeline itself has answered. `wished` is what has chosen this pipeline for the
        question.
        """
        opened_before = opening_ns()
        with ExitStack() as search:
            with opening():
                store = search.enter_context(opened.read_model.reading())
            deadline_ns = None if allowed_ms is None else query_ns() + int(allowed_ms * 1e6)
            query = question.query(store, now, deadline_ns)
            shown = _shown(store, snippet, content, opened_before)
            # a copy: nothing that later searches depend on can be reached from an answer
            adjust = replace(wished.wanted) if wished else Adjustment()
            seen = store.sessions.state(query.session, now) if query.session and opened.recorder.keeps_texts else None
            asked = Asked(question, now, allowed_ms, adjust, store.sequence, seen)
            before = answered_by_lists()
            try:
                result = self._answered(
                    query, store, shown, lambda text: counted_tokens([text], opened.counter)[0], watched
                )
                if answered_by_lists() > before:
                    result = result.with_fact(*APPROXIMATE)
                if watched is not None:
                    result = watched.beside(result, store, shown)
                result = result.warned(after=_pending(opened))
                return self._told(result.warned(after=self._unmet(result, wished)), asked, store)
            finally:
                if watched is not None:
                    watched.answered(store, opened, asked)

    def _unmet(self, result: SearchResult, wished: Wished | None) -> tuple[str, ...]:
        """What is not as a search wanted it."""
        if wished and wished.wanted and self.by_handovers(result):
            return (resume.as_it_is(wished.wanted.named),)
        if wished and wished.wanted.session_boost and not result.outcome.query.session:
            return (*wished.unmet, _NO_SESSION)
        return wished.unmet if wished else ()

    def _told(self, result: SearchResult, asked: Asked, store: Snapshot) -> SearchResult:
        """The answer with what no step of a pipeline knows."""
        result = replace(result.warned(after=self._amiss), asked=asked)
        query = result.outcome.query
        if resume.asks_for_handover(query) and query.session:
            found = resume.admitted(store.sessions.attended(query.session, query.now), query, store)
            memories = named([one.memory for one in found], store)
            levels = [
                {**memory, "attention": round(one.attention, 4), "source": one.source}
                for memory, one in zip(memories, found, strict=True)
            ]
            result = result.with_fact("attended", levels)
        return result.with_fact("words_from", "file") if store.lexicon.from_file else result

    def _answered(
        self, query: Query, store: Store, shown: Shown, tokens: Callable[[str], int], watched: Search | None = None
    ) -> SearchResult:
        def run(runner: Runner, query: Query) -> SearchResult:
            if watched and runner is self.runner:
                return shown(watched.through(runner).run(query, store), runner.pipeline)
            if watched:
                watched.elsewhere("rollout" if self._rolled_out.has(runner) else "resume")
            return shown(runner.run(query, store), runner.pipeline)

        if not resume.asks_for_handover(query):
            return run(self.runner_for(query.session), query)
        handovers = run(self._handovers, resume.of_handovers(query))
        if handovers.why_nothing:
            return handovers
        words = resume.of_words(query, store)
        if handovers.results and (words is None or not resume.are_known(words, store)):
            return handovers
        if words is None:
            return handovers.holding_nothing(resume.no_handover(query, store, tokens))
        runner = self.runner_for(query.session)
        if first := resume.telling(handovers.outcome, words, store):
            both = resume.together(handovers.outcome, first, runner.run(words, store))
            return shown(both, self._handovers.pipeline)
        none = (
            resume.none_tells(handovers.outcome, store)
            if handovers.results
            else resume.no_handover(query, store, tokens)
        )
        return replace(run(runner, words), query=query.text).warned(before=[none])

    def plan(self, opened: OpenStore, question: Question) -> PlanReport:
        """What a search would do."""
        with opened.read_model.reading() as snapshot:
            store = StoreView(snapshot)
            query = question.query(store, time.time(), None)
            if resume.asks_for_handover(query):
                return plan_report(self._handovers, resume.of_handovers(query), store)
            return plan_report(self.runner_for(query.session), query, store, self.variants)

    def why_not(self, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
        """Why a memory is not in an answer that came from here."""
        return why_not(self.answering(result).pipeline, result, memory, store)

    def gave(self, result: SearchResult) -> bool:
        """Whether an answer came from here."""
        answered_by = result.outcome.trace.config_hash
        return self.runner.pipeline.hash == answered_by or self.answering(result) is not self.runner

    def answering(self, result: SearchResult) -> Runner:
        """The runner of an answer: the preset of hand-overs answers questions of its mode alone."""
        answered_by = result.outcome.trace.config_hash
        if self.by_handovers(result):
            return self._handovers
        if found := self._rolled_out.answering(answered_by):
            return found
        asked = result.asked
        if asked is not None and asked.adjust and self.checked is not None:
            with suppress(SpeckitError):  # what another pipeline could do
                runner = self.adjusted(asked.adjust, asked.question.session).runner
                if runner.pipeline.hash == answered_by:
                    return runner
        return self.runner

    def by_handovers(self, result: SearchResult) -> bool:
        """Whether the preset of hand-overs gave an answer."""
        asked = resume.asks_for_handover(result.outcome.query)
        return asked and result.outcome.trace.config_hash == self._handovers.pipeline.hash


def _pending(opened: OpenStore) -> tuple[str, ...]:
    """What the vectors of the store wait for."""
    unsettled = opened.models.unsettled()
    return (unsettled,) if unsettled else ()


def _shown(store: Store, snippet: int, content: bool, opened_before: int) -> Shown:
    def shown(outcome: Outcome, pipeline: Pipeline) -> SearchResult:
        declared = tuple(channel.id for channel in pipeline.candidates.channels)
        spent = opening_ns() - opened_before
        return answer(outcome, store, declared, snippet, content, spent, pipeline.annotate)

    return shown


MOST_ADJUSTED = 16
"""Pipelines that single searches wanted and that are kept."""


@dataclass(frozen=True, slots=True)
class Wished:
    """What answers a search that wants `wanted`: `searching`, by the pipeline `checked`, which was derived of `base`.

    Both are None for a pipeline that was put together of objects. `unmet` is what the pipeline has no step for, a
    sentence each.
    """

    searching: Searching
    base: Checked | None
    checked: Checked | None
    wanted: Adjustment = NOTHING
    unmet: tuple[str, ...] = ()


class Wishes:
    """What was derived of one pipeline and of those of its shares. Safe for several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Adjustment], Wished] = OrderedDict()
        self._guard = Lock()

    def of(self, searching: Searching, base: Checked | None, wanted: Adjustment) -> Wished:
        """Who answers a search of a session that `base` answers otherwise.

        A pipeline that does just what the one in force does is that one, with all that runs beside it. Raises E030 for
        a pipeline that was put together of objects, and for values that are not accepted.
        """
        if not wanted:
            return Wished(searching, base, base)
        wanted = replace(wanted)  # what is kept is nobody else's
        wanted.check()
        if base is None:
            raise SpeckitError("E030", "a pipeline that was put together of objects answers as it is")
        key = base.hash, wanted
        with self._guard:
            found = self._kept.pop(key, None) or _derived(searching, base, wanted)
            self._kept[key] = found
            if len(self._kept) > MOST_ADJUSTED:
                self._kept.popitem(last=False)
        return found


def _derived(searching: Searching, base: Checked, wanted: Adjustment) -> Wished:
    whole, unmet = adjusted(base.effective, wanted)
    checked = examined(whole, searching.registry)
    if checked.hash == base.hash and not checked.problems:
        return Wished(searching, base, base, wanted, unmet)
    return Wished(searching.through_checked(checked), base, checked, wanted, unmet)
