"""The public Python object: one store, one pipeline, every operation."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from speckit_memory.config.workspace.deadline import deadline_in_force, deadline_of
from speckit_memory.config.workspace.recording import recording_in_force
from speckit_memory.config.workspace.settings import BY_CALL, BY_VALUE, Settings, settings
from speckit_memory.config.workspace.vector_indexing_in_force import vector_indexing_in_force
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine import components
from speckit_memory.engine.answers.request import SearchRequest, normalised_folder, texts
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.search_options import SearchOptions, wanted_of
from speckit_memory.engine.api.configuration import ConfigurationOperations, chosen_or_shipped
from speckit_memory.engine.api.deletion import DeletionOperations
from speckit_memory.engine.api.documents import DocumentOperations
from speckit_memory.engine.api.exchange import ExchangeOperations
from speckit_memory.engine.api.explain import ExplainOperations
from speckit_memory.engine.api.graph import GraphOperations
from speckit_memory.engine.api.indexing import IndexOperations
from speckit_memory.engine.api.inventory import InventoryOperations
from speckit_memory.engine.api.learning import LearningOperations
from speckit_memory.engine.api.shadows import ShadowOperations
from speckit_memory.engine.api.triggers import TriggerOperations
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.store_check import check_store
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.search.plans import PlanReport
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ActiveConfiguration, ConfigurationState
from speckit_memory.engine.serving.start_shadows import beside_searches, serving_of
from speckit_memory.engine.session import usage_events
from speckit_memory.engine.session.reopening import ReopeningStore, Replacement
from speckit_memory.engine.session.shared_store import StoreLease
from speckit_memory.engine.upkeep.upkeep_thread import write
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import Embedder, counted_tokens
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.identity import ReplacedError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.loading import PipelineSource, name_of
from speckit_memory.pipeline.model.columns import Mode
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.view import StoreView

if TYPE_CHECKING:
    from speckit_memory.engine.diagnostics.health import HealthReport
    from speckit_memory.engine.graph.report import GraphReport


class Memory(
    ConfigurationOperations,
    IndexOperations,
    DocumentOperations,
    DeletionOperations,
    ExchangeOperations,
    TriggerOperations,
    GraphOperations,
    LearningOperations,
    ShadowOperations,
    ExplainOperations,
    InventoryOperations,
):
    """Everything remembered in one file, searchable through one pipeline.

    Use it as a context manager. Threads may share one object.
    """

    def __init__(self, share: StoreLease, serving: ConfigurationState) -> None:
        """Use `Memory.open` instead."""
        self._share = share
        self._in_force = ActiveConfiguration(serving)

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        pipeline: PipelineSource | None = None,
        *,
        root: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        create: bool = True,
        strict: bool = False,
        overrides: Mapping[str, str] | None = None,
        shadows: bool = True,
        stand_in: bool = False,
    ) -> Self:
        """Opens a store, creating it unless `create` is false.

        If another file takes the store's path, or its contents are set back, the new file is opened and served.

        Args:
            path: The store's file; default: the environment, then `.speckit/memory.db`.
            pipeline: A path, a preset name, a mapping in the form of a pipeline file, or a pipeline that was loaded
                already; default: the environment, then `.speckit/pipeline.yaml`, then the shipped pipeline.
            root: The folder that keys are relative to.
            environ: Environment variables; default: those of the process.
            create: Create a missing store, now or later when a deleted file is written to.
            strict: Run components under the strict guard and raise failures of steps (tests).
            overrides: "step.parameter" to a YAML value.
            shadows: Run the configured variants and record searches; false turns both off.
            stand_in: Serve the shipped pipeline if the configured one cannot be used.

        Raises:
            SpeckitError: The store or the configuration cannot be used; lists all problems.
        """
        config = settings(path, None, root, environ)
        source: PipelineSource = config.pipeline
        if pipeline is not None and pipeline != "":
            source, config = pipeline, _chosen(config, pipeline)
        # read the files first: an invalid one must be reported before a store is created
        config = replace(
            config,
            deadline_ms=deadline_in_force(config),
            overrides=overrides or {},
            recording=recording_in_force(config),
            vector_index=vector_indexing_in_force(config),
            entities=load_workspace_config(config.root).entities,
        )
        searching, config = chosen_or_shipped(source, config, strict=strict, stand_in=stand_in)
        models, recorder = TextModels(config.environ), Recorder(config.db, config.recording)

        def opened(may_create: bool) -> OpenStore:
            database = Database.open(config.db, create=may_create)
            return OpenStore(database, config.root, models, recorder, config.vector_index, config.entities)

        share = StoreLease(ReopeningStore(opened, create=create, measured=not shadows))
        return cls(share, serving_of(config, searching, recorder) if shadows else ConfigurationState(config, searching))

    def using(self, pipeline: PipelineSource, overrides: Mapping[str, str] | None = None) -> Memory:
        """The same open store and models through another pipeline: `with memory.using("bm25") as other:`.

        Each object is closed separately, in any order; the store closes with the last one. Raises SpeckitError with all
        problems of the pipeline, and E027 if this object is closed.
        """
        config = replace(_chosen(self.settings, pipeline), overrides=overrides or {})
        searching = Searcher.through(pipeline, config, overrides, strict=self._searching.runner.strict)
        return Memory(self._share.another(), ConfigurationState(config, searching))

    def with_shadows(self, *pipelines: PipelineSource) -> Memory:
        """The same store and pipeline, with the answers of other pipelines attached to each result for comparison.

        `with memory.with_shadows("bm25") as both: both.search("why?").beside`. The results themselves are those of this
        pipeline; the others answer the same query over the same snapshot, and steps that they share run once. Close it
        separately. Raises SpeckitError with all problems of the pipelines.
        """
        now = self._in_force.now
        shadows = beside_searches(now.searching, now.settings, self._open.recorder, inline=pipelines)
        return Memory(self._share.another(), ConfigurationState(now.settings, now.searching, shadows))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes this object; later calls raise E027. Closing twice is allowed.

        Waits a moment for dark runs; those that do not end in time are counted as dropped.
        """
        self.end_shadows()
        self._share.end()

    @staticmethod
    def end_extensions() -> None:
        """Ends the processes of isolated extensions; for programs that exit without the interpreter's shutdown."""
        components.end_extensions()

    @property
    def _followed(self) -> ReopeningStore:
        return self._share.store

    @property
    def _open(self) -> OpenStore:
        return self._followed.current

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """Every time that the store's file turned out to be replaced or set back."""
        return tuple(self._followed.replacements)

    def make_again(self) -> None:
        """Creates the store's file again if it was deleted. Raises as opening a store does."""
        opened = self._open
        try:
            opened.database.latest()
        except ReplacedError as why:
            self._followed.open_anew(opened, why, create=True)

    @property
    def database(self) -> Database:
        """The store's file."""
        return self._open.database

    @property
    def embedder(self) -> Embedder:
        """The embedding model in use."""
        return self._open.embedder

    @property
    def analyser(self) -> Analyser:
        """The analyser that splits text into terms."""
        return self._open.analyser

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text for a language model, at most a few per cent too low (feature T24)."""
        return counted_tokens(texts, self._open.counter)

    def load_vectors(self) -> None:
        """Reads all vectors into memory now instead of during a search; for processes that can afford the wait."""
        self._followed.run(lambda opened: opened.read_model.load_vectors())

    def keep_segment(self) -> None:
        """Keeps the store's segment up to date in a low-priority thread; for long-lived processes.

        A program that still searches a minute after it opened the store does this automatically.
        """
        self._followed.upkeep.begin()

    def keep_maintained(self) -> None:
        """Makes that thread also run background jobs (see `maintain`) and replay queries for shadows; for servers."""
        self._followed.upkeep.begin(jobs=True, replay=self._replay)

    def write_segment(self) -> None:
        """Writes the store's segment now, due or not: searches that start from this file need not read the tables
        first.

        Raises E029 if it cannot be written; answers are the same without it.
        """
        self._followed.run(lambda opened: write(opened, only_if_due=False))

    def store(self) -> Store:
        """The current state of the store, as the pipeline sees it.

        The object stays on one state until something is written; `search` alone reads from a snapshot: see
        `pipeline.ports.protocols`.
        """
        return StoreView(self._followed.run(lambda opened: opened.read_model.current()))

    def search(
        self,
        text: str,
        *,
        limit: int = 10,
        folder: str = "",
        tier: str = "",
        context_type: str = "",
        mode: Mode = "auto",
        session: str = "",
        now: float | None = None,
        deadline_ms: float | Literal["setting"] | None = "setting",
        concepts: Sequence[str] = (),
        anchors: Sequence[str] = (),
        token_usage: float | None = None,
        dedup: bool = True,
        intent: str | None = None,
        adjust: SearchOptions | None = None,
        snippet: int = 400,
        content: bool = False,
        query_id: str = "",
    ) -> SearchResult:
        """Runs one query through the pipeline. "Words in quotes" are required, a -word is excluded (docs/queries.md).

        Call `served` with the result once it has reached the reader. Fixing `now` and `deadline_ms` makes a search
        reproducible.

        Args:
            text: The query; may be empty if `concepts` are given.
            limit: Maximum number of results.
            folder: Search only this folder and its sub-folders.
            tier: Search only this importance tier.
            context_type: Search only this context type.
            mode: "resume" looks for handovers first, then for the words that name the work.
            session: Session identifier; enables deduplication and attention.
            now: Time of the query in epoch seconds; default: the clock.
            deadline_ms: After this time costly or optional steps are skipped, and the answer says so. Opening the store
                does not count; None or 0 is no deadline.
            concepts: Two to five texts that must all match; `text`, if given, ranks the matches.
            anchors: Return only these sections of the memories.
            token_usage: Share of the caller's context window in use, [0, 1].
            dedup: Leave out what the session was sent already.
            intent: One of seven intents (docs/queries.md), "" for none; default: detected from the words.
            adjust: Per-search options. If the pipeline has to be rebuilt for them, variants do not run.
            snippet: Length of the excerpts in characters; 0 for none.
            content: Whether rows carry the whole text of their memory.
            query_id: 16 hexadecimal digits that name the query in records; default: random.

        Raises:
            SpeckitError: An argument is not accepted.
        """

        question = SearchRequest(
            text=text,
            limit=limit,
            folder=folder,
            tier=tier,
            context_type=context_type,
            mode=mode,
            session=session,
            concepts=texts(concepts, "concepts"),
            anchors=texts(anchors, "anchors"),
            token_usage=token_usage,
            dedup=dedup,
            intent=intent,
        )
        question.require_types()
        self.look_at_files()
        set_ms = self.settings.deadline_ms
        allowed_ms = set_ms if deadline_ms == "setting" else deadline_of(deadline_ms or 0, "deadline_ms")

        query_id = query_id or secrets.token_hex(8)

        def found(opened: OpenStore) -> SearchResult:
            asked = time.time() if now is None else now
            if watched:
                watched.again()
            result = wished.searching.search(
                opened,
                question,
                now=asked,
                allowed_ms=allowed_ms,
                snippet=snippet,
                content=content,
                watched=watched,
                wished=wished,
            )
            return replace(result, origin=opened.name, query_id=query_id, watched=noted)

        self._followed.upkeep.asked()
        with SERVING.serving(), self._in_force.using() as serving:
            wished = serving.searching.wished(wanted_of(adjust), session)
            watched = serving.watched(query_id) if wished.searching is serving.searching else None
            noted = serving.shadows is not None or serving.replays is not None
            try:
                return self._followed.run(found).warned(after=self._amiss)
            finally:
                if watched:
                    watched.over()

    def served(self, result: SearchResult, count: int | None = None) -> str:
        """Records that the first `count` results (all by default) have reached the caller.

        Their usage is counted, the session attends to them and will not be sent them again, and memories that were
        shown with their whole text or sections count as opened. Call it with the number of rows that were really shown.
        Usage and comparison records are written shortly afterwards, outside the request. Returns a warning if the
        session could not be updated, else "".
        """
        outcome, opened = result.outcome, self._open
        if result.origin != opened.name:
            return ""  # its ids are those of another store
        memories = [row.id for row in result.results[:count] if not row.repeated]
        opened.usage.note(memories, outcome.query.now, result.opened(count))
        pipeline = self._in_force.answered(result).runner.pipeline
        usage_events.note_answer(opened, pipeline, result, count)
        if self._in_force.now.replays is not None:
            self._followed.upkeep.saved()
        remembered = any(step.about.looks_back for step in pipeline.annotate)
        shown = len(result.results) if count is None else count
        try:
            session_events.record_served(opened.database, result, shown, remembered=remembered)
        except SpeckitError as error:
            return f"this answer could not be recorded in the session, so it may be repeated: {error}"
        return ""

    def write_notes(self) -> None:
        """Writes pending usage counts and observations now; otherwise a thread writes them within seconds."""
        opened = self._open
        opened.usage.write()
        opened.recorder.write()

    def plan(
        self, text: str, *, limit: int = 10, folder: str = "", mode: Mode = "auto", token_usage: float | None = None
    ) -> PlanReport:
        """Describes what a search would do, without running it.

        Args:
            text: The query.
            limit: Maximum number of results.
            folder: Search only this folder and its sub-folders.
            mode: "resume" looks for handovers first.
            token_usage: Share of the caller's context window in use, [0, 1].
        """
        question = SearchRequest(text=text, limit=limit, folder=folder, mode=mode, token_usage=token_usage)

        return self._followed.run(lambda opened: self._searching.plan(opened, question))

    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key. Raises E080."""
        return self._followed.run(lambda opened: reader.get_memory(opened.database.reader(), name))

    def list(
        self, folder: str = "", sort: str = "created_at", limit: int = 20, offset: int = 0
    ) -> tuple[list[MemoryRecord], int]:
        """One page of the memories of a folder and its sub-folders.

        Args:
            folder: The folder; "" is the root.
            sort: The attribute to sort by.
            limit: Rows per page.
            offset: Rows to skip.

        Returns:
            The records of the page, and the total number of memories.
        """
        below = normalised_folder(folder)
        return self._followed.run(
            lambda opened: reader.list_memories(opened.database.reader(), below, sort, limit, offset)
        )

    def health(self) -> HealthReport:
        """Checks everything that a search needs.

        Raises SpeckitError if the store was replaced by a file that cannot be opened.
        """
        # imported here: searches do not need it
        from speckit_memory.engine.diagnostics.health import HealthContext, health

        self._followed.run(lambda opened: opened.database.latest())
        # without variants and recording: this query is a probe, not a user's question
        unwatched = Memory(self._share, ConfigurationState(self.settings, self._searching))
        ask = partial(unwatched.search, limit=3, deadline_ms=None)
        files = self.look_at_files()
        return health(HealthContext(self._open, self._in_force.now, self.replacements, ask, self.shadows, files))

    def check(self, *, every_word: bool = True) -> tuple[str, ...]:
        """The faults of the store's file, one sentence each; empty if it is healthy.

        Comparing the terms of the full-text rows takes some seconds per million words. Without `every_word` a store of
        more than half a million words is sampled, as by `health`, which reports the share.
        """
        return self._followed.run(lambda opened: check_store(opened.database, every_word=every_word).wrong)

    def graph(self) -> GraphReport:
        """Statistics of the causal graph: density, makers of edges, and computed values."""
        from speckit_memory.engine.graph.report import report

        return self._followed.run(lambda opened: report(opened.database.reader()))

    def stats(self) -> reader.StoreStatistics:
        """Counts of the store's contents."""
        return self._followed.run(lambda opened: reader.statistics(opened.database.reader()))


def _chosen(config: Settings, pipeline: PipelineSource) -> Settings:
    """The settings with the pipeline that a call names."""
    by = BY_CALL if isinstance(pipeline, str | Path) else BY_VALUE
    return replace(config, pipeline=name_of(pipeline), pipeline_by=by)
