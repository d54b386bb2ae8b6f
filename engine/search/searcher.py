"""Runs searches, dry runs and explanations for one pipeline; "resume" queries try the handover preset first."""

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
from speckit_memory.config.workspace.settings import SHIPPED, Settings
from speckit_memory.config.workspace.workspace_file import ExtensionSettings, extensions_in_force
from speckit_memory.engine import components
from speckit_memory.engine.answers import resume
from speckit_memory.engine.answers.answer import answer, name_memories
from speckit_memory.engine.answers.request import RecordedRequest, SearchRequest
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.search_options import NOTHING, SearchOptions, adjust_pipeline
from speckit_memory.engine.answers.why_not import why_not
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.search.plans import PlanReport, plan_report
from speckit_memory.engine.search.rollout import RolledOut, runner_of
from speckit_memory.engine.shadowing.search import ShadowSearch, Shown
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.models.embedders.counting import counted_tokens
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import ApproximateIndex, answered_by
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, assemble, build, check_pipeline, examine
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant, Rollout, checked_variants, rollouts
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.clock import opening, opening_ns, query_ns
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.registry import Registry
from speckit_memory.pipeline.running.runner import Outcome, Runner
from speckit_memory.pipeline.running.view import StoreView

APPROXIMATE: tuple[ApproximateIndex, ...] = ("lists", "hnsw")
"""The approximate indexes of vectors: an answer that one of them gave has its name as the fact `vectors_from`."""
_NO_SESSION = "no session is named, so its attention raises no result"


class Searcher:
    """A pipeline, its variants, and the preset that answers queries in the mode "resume"."""

    def __init__(
        self,
        runner: Runner,
        config: Settings,
        variants: tuple[CheckedVariant, ...] = (),
        checked: CheckedPipeline | None = None,
        rollouts: tuple[Rollout, ...] = (),
        unusable: tuple[Problem, ...] = (),
        extensions: ExtensionSettings | None = None,
    ) -> None:
        """Takes pipelines that are built already; `through` builds them.

        Args:
            runner: Answers every session that no rollout covers.
            config: The settings in force.
            variants: The shadow, dark-run and interleaved variants that can run.
            checked: What the pipeline was built from; None for a pipeline that was assembled from objects.
            rollouts: Pipelines for the sessions for which flags are enabled.
            unusable: Problems of configured variants that cannot run.
            extensions: How extensions run; read from the configuration if None.
        """
        self.runner = runner
        self._rolled_out = RolledOut(rollouts, strict=runner.strict)
        self.variants = variants
        self.config = config
        self.checked = checked
        self.unusable = unusable
        self._rollouts = rollouts
        self._extensions = extensions
        self._wishes = DerivedPipelineCache()
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
    ) -> Searcher:
        """Builds a pipeline and its variants.

        A faulty variant does not stop the pipeline: the variant is disabled, and every answer carries a warning.

        Args:
            pipeline: A path, a preset name, a mapping, or a pipeline that was loaded already.
            config: The settings in force.
            overrides: "step.parameter" to a YAML value.
            strict: Raise failures of steps instead of degrading the answer.
            extensions: How extensions run; read from the configuration if None.

        Raises:
            SpeckitError: All problems of the pipeline, its rollouts and its list of variants at once.
        """
        extensions = extensions or extensions_in_force(config.environ, config.root)
        registry = components.registry_of(extensions)
        checked = examine(pipeline, registry, config.environ_of_root, overrides)
        variants, problems, unusable = checked_variants(checked, registry, config.environ_of_root)
        shares, misrolled = rollouts(checked, registry)
        if problems or checked.problems or misrolled:
            raise SpeckitError.of([*checked.problems, *problems, *unusable, *misrolled])
        running = tuple(one for one in variants if not one.checked.problems)
        runner = runner_of(assemble(checked), strict=strict)
        return cls(runner, config, running, checked, shares, tuple(unusable), extensions)

    @classmethod
    def shipped(cls, config: Settings, wrong: tuple[Problem, ...], *, strict: bool) -> Searcher:
        """The shipped pipeline as a fallback for a configuration with the problems `wrong`.

        Configuration files and environment variables for pipelines and flags are ignored.
        """
        undecided = replace(config, pipeline=DEFAULT, pipeline_by=SHIPPED, root=Path(os.devnull), environ={})
        extensions = extensions_in_force(config.environ, config.root)
        searching = cls.through(DEFAULT, undecided, None, strict=strict, extensions=extensions)
        searching.stands_in_for = wrong
        return searching

    @cached_property
    def extensions(self) -> ExtensionSettings:
        """How installed extensions run, as read when the pipeline was built."""
        return self._extensions or extensions_in_force(self.config.environ, self.config.root)

    @property
    def registry(self) -> Registry:
        """The registry that the components of the pipeline come from."""
        return components.registry_of(self.extensions)

    @property
    def beside(self) -> tuple[object, ...]:
        """A key of the pipeline and its variants: equal if the same variants run with the same pipeline."""
        pipeline = self.runner.pipeline
        variants = (
            (one.variant.name, one.variant.mode, one.variant.sample, one.variant.interleave, one.checked.hash)
            for one in self.variants
        )
        return (pipeline.name, pipeline.hash, *variants)

    @property
    def identity(self) -> tuple[object, ...]:
        """A key of the answers: equal if two pipelines give the same results and the same warnings."""
        shares = ((one.percent, one.checked.hash) for one in self._rollouts)
        return (self.beside, *shares, *self.unusable)

    def changed(self, whole: Effective) -> Searcher:
        """This object with another pipeline and without variants. Raises SpeckitError with all problems."""
        return self.through_checked(check_pipeline(whole, self.registry))

    def through_checked(self, checked: CheckedPipeline) -> Searcher:
        """This object with a pipeline that was examined, without variants. Raises as `changed` does."""
        if checked.problems:
            raise SpeckitError.of(checked.problems)
        runner = runner_of(assemble(checked), strict=self.runner.strict)
        return Searcher(runner, self.config, checked=checked, extensions=self._extensions)

    def wished(self, wanted: SearchOptions, session: str = "") -> DerivedPipeline:
        """The pipeline that answers one search with per-search options, derived from the one that answers the session.

        Raises E030 for a pipeline that was assembled from objects, and for values that are not accepted.
        """
        return self._wishes.of(self, self._rolled_out.checked(session, self.config.db) or self.checked, wanted)

    def adjusted(self, wanted: SearchOptions, session: str = "") -> Searcher:
        """The `Searcher` for one search with options; this object if it needs no other. Raises as `wished`."""
        return self.wished(wanted, session).searching

    def runner_for(self, session: str) -> Runner:
        """The runner that answers a session, the same one in every process. "" means a query without a session."""
        return self._rolled_out.runner(session, self.config.db) or self.runner

    @cached_property
    def _amiss(self) -> tuple[str, ...]:
        """Warnings about variants that cannot run and about environment variables that look like misspelt flags."""
        flags = self.checked.effective.flags if self.checked else {}
        idle = tuple(f"a shadow pipeline cannot run: {problem}" for problem in self.unusable)
        if not flags:
            return idle
        return (*idle, *misspelt_variables(self.config.environ, flags, self.registry.flag_files))

    @cached_property
    def _handovers(self) -> Runner:
        built = build(resume.PIPELINE, self.registry, self.config.environ_of_root)
        return runner_of(built, strict=self.runner.strict)

    def search(
        self,
        opened: OpenStore,
        question: SearchRequest,
        *,
        now: float,
        allowed_ms: float | None,
        query_id: str = "",
        recorded: bool = False,
        watched: ShadowSearch | None = None,
        wished: DerivedPipeline | None = None,
    ) -> SearchResult:
        """Answers one question from an open store; see `Memory.search`.

        Args:
            opened: The store to search.
            question: The query text with its filters.
            now: Time of the query in epoch seconds.
            allowed_ms: Time limit in milliseconds; None for no limit.
            query_id: Names the query in records.
            recorded: Whether variants are compared with the pipeline.
            watched: The shadow search to pass the control's answer to, if variants see this query.
            wished: The per-search options and the pipeline that was derived for them.
        """
        opened_before = opening_ns()
        with ExitStack() as search:
            with opening():
                store = search.enter_context(opened.read_model.reading(lagging=True, text=question.text))
            deadline_ns = None if allowed_ms is None else query_ns() + int(allowed_ms * 1e6)
            query = question.query(store, now, deadline_ns)
            shown = _shown_parts(store, question.snippet, question.content, opened_before)
            seen = store.sessions.state(query.session, now) if query.session and opened.recorder.keeps_texts else None
            asked = RecordedRequest(question, now, allowed_ms, store.sequence, seen)
            before = {index: answered_by(index) for index in APPROXIMATE}
            try:
                result = self._answered(
                    query, store, shown, lambda text: counted_tokens([text], opened.counter)[0], watched
                )
                for index, count in before.items():
                    if answered_by(index) > count:
                        result = result.with_fact("vectors_from", index)
                if watched is not None:
                    result = watched.beside(result, store, shown)
                source = opened.database.read_source()
                result = result.warned(after=(*_pending(opened), *source.warnings))
                if source.replica:
                    result = result.with_fact("replica", source.replica.as_json())
                result = self._told(result.warned(after=self._unmet(result, wished)), store)
                return replace(result, asked=asked, origin=opened.name, query_id=query_id, watched=recorded)
            finally:
                if watched is not None:
                    watched.answered(store, opened, asked)

    def _unmet(self, result: SearchResult, wished: DerivedPipeline | None) -> tuple[str, ...]:
        """Warnings about per-search options that were not applied."""
        if wished and wished.wanted and self.by_handovers(result):
            return (resume.ignored_options_warning(wished.wanted.named),)
        if wished and wished.wanted.session_boost and not result.outcome.query.session:
            return (*wished.unmet, _NO_SESSION)
        return wished.unmet if wished else ()

    def _told(self, result: SearchResult, store: Snapshot) -> SearchResult:
        """Adds the warnings and facts that are known outside the pipeline."""
        result = result.warned(after=self._amiss)
        query = result.outcome.query
        if resume.asks_for_handover(query) and query.session:
            found = resume.admitted_memories(store.sessions.attended(query.session, query.now), query, store)
            memories = name_memories([one.memory for one in found], store)
            levels = [
                {**memory, "attention": round(one.attention, 4), "source": one.source}
                for memory, one in zip(memories, found, strict=True)
            ]
            result = result.with_fact("attended", levels)
        return result.with_fact("words_from", "file") if store.lexicon.from_file else result

    def _answered(
        self,
        query: Query,
        store: Store,
        shown: Shown,
        tokens: Callable[[str], int],
        watched: ShadowSearch | None = None,
    ) -> SearchResult:
        def run(runner: Runner, query: Query) -> SearchResult:
            if watched and runner is self.runner:
                return shown(watched.through(runner).run(query, store), runner.pipeline)
            if watched:
                watched.elsewhere("rollout" if self._rolled_out.has(runner) else "resume")
            return shown(runner.run(query, store), runner.pipeline)

        if not resume.asks_for_handover(query):
            return run(self.runner_for(query.session), query)
        # handovers answer alone, unless known words name the work: then these are searched too
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

    def plan(self, opened: OpenStore, question: SearchRequest) -> PlanReport:
        """Describes what a search would do, without running it."""
        with opened.read_model.reading(lagging=True) as snapshot:
            store = StoreView(snapshot)
            query = question.query(store, time.time(), None)
            if resume.asks_for_handover(query):
                return plan_report(self._handovers, resume.of_handovers(query), store)
            return plan_report(self.runner_for(query.session), query, store, self.variants)

    def why_not(self, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
        """Explains why a memory is missing from an answer of this object."""
        return why_not(self.answering(result).pipeline, result, memory, store)

    def gave(self, result: SearchResult) -> bool:
        """Whether this object produced the answer."""
        answered_by = result.outcome.trace.config_hash
        return self.runner.pipeline.hash == answered_by or self.answering(result) is not self.runner

    def answering(self, result: SearchResult) -> Runner:
        """The runner that produced an answer; the handover preset counts for "resume" queries alone."""
        answered_by = result.outcome.trace.config_hash
        if self.by_handovers(result):
            return self._handovers
        if found := self._rolled_out.answering(answered_by):
            return found
        asked = result.asked
        if asked is not None and asked.question.adjust and self.checked is not None:
            with suppress(SpeckitError):  # the pipeline may have changed since and reject these options now
                runner = self.adjusted(asked.question.adjust, asked.question.session).runner
                if runner.pipeline.hash == answered_by:
                    return runner
        return self.runner

    def by_handovers(self, result: SearchResult) -> bool:
        """Whether the handover preset produced the answer."""
        asked = resume.asks_for_handover(result.outcome.query)
        return asked and result.outcome.trace.config_hash == self._handovers.pipeline.hash


def _pending(opened: OpenStore) -> tuple[str, ...]:
    """The warning about a change of the embedding model that is not finished, if there is one."""
    unsettled = opened.models.unsettled()
    return (unsettled,) if unsettled else ()


def _shown_parts(store: Store, snippet: int, content: bool, opened_before: int) -> Shown:
    def shown(outcome: Outcome, pipeline: Pipeline) -> SearchResult:
        declared = tuple(channel.id for channel in pipeline.candidates.channels)
        spent = opening_ns() - opened_before
        return answer(outcome, store, declared, snippet, content, spent, pipeline.annotate)

    return shown


MOST_ADJUSTED = 16
"""Maximum number of derived pipelines in the cache."""


@dataclass(frozen=True, slots=True)
class DerivedPipeline:
    """The pipeline of a search with the options `wanted`.

    `searching` answers with the pipeline `checked`, which was derived from `base`; both are None for a pipeline that
    was assembled from objects. `unmet` has one sentence for each option that no step implements.
    """

    searching: Searcher
    base: CheckedPipeline | None
    checked: CheckedPipeline | None
    wanted: SearchOptions = NOTHING
    unmet: tuple[str, ...] = ()


class DerivedPipelineCache:
    """A cache of pipelines derived from one pipeline and its rollouts. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, SearchOptions], DerivedPipeline] = OrderedDict()
        self._guard = Lock()

    def of(self, searching: Searcher, base: CheckedPipeline | None, wanted: SearchOptions) -> DerivedPipeline:
        """The pipeline for a session that `base` answers, with options.

        If the derived pipeline equals the base, the original with its variants is returned. Raises E030 for a pipeline
        that was assembled from objects, and for values that are not accepted.
        """
        if not wanted:
            return DerivedPipeline(searching, base, base)
        wanted = replace(wanted)  # a copy for the cache: callers can modify the original
        wanted.check()
        if base is None:
            raise SpeckitError("E030", "a pipeline that was assembled from objects accepts no per-search options")
        key = base.hash, wanted
        with self._guard:
            found = self._kept.pop(key, None) or _derived(searching, base, wanted)
            self._kept[key] = found
            if len(self._kept) > MOST_ADJUSTED:
                self._kept.popitem(last=False)
        return found


def _derived(searching: Searcher, base: CheckedPipeline, wanted: SearchOptions) -> DerivedPipeline:
    whole, unmet = adjust_pipeline(base.effective, wanted)
    checked = check_pipeline(whole, searching.registry)
    if checked.hash == base.hash and not checked.problems:
        return DerivedPipeline(searching, base, base, wanted, unmet)
    return DerivedPipeline(searching.through_checked(checked), base, checked, wanted, unmet)
