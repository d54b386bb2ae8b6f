"""The product as a Python object: one store, one pipeline, every operation."""

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
from speckit_memory.engine.answers.request import Question, normalised_folder, texts
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.search_options import Adjustment, wanted_of
from speckit_memory.engine.api.configuration import Configuring, chosen_or_shipped
from speckit_memory.engine.api.deletion import Deleting
from speckit_memory.engine.api.documents import Editing
from speckit_memory.engine.api.exchange import Exchanging
from speckit_memory.engine.api.explain import Telling
from speckit_memory.engine.api.graph import Connecting
from speckit_memory.engine.api.indexing import Remembering
from speckit_memory.engine.api.inventory import Inventory
from speckit_memory.engine.api.learning import Learning
from speckit_memory.engine.api.shadows import Shadowed
from speckit_memory.engine.api.triggers import MatchingTriggers
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.store_check import checked
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.search.plans import PlanReport
from speckit_memory.engine.search.searcher import Searching
from speckit_memory.engine.serving.serving import Served, Serving
from speckit_memory.engine.serving.start_shadows import beside_searches, serving_of
from speckit_memory.engine.session import usage_events
from speckit_memory.engine.session.reopening import Following, Replacement
from speckit_memory.engine.session.shared_store import Share
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
    Configuring,
    Remembering,
    Editing,
    Deleting,
    Exchanging,
    MatchingTriggers,
    Connecting,
    Learning,
    Shadowed,
    Telling,
    Inventory,
):
    """Everything remembered in one file, searchable through one pipeline.

    Use it as a context manager. One object may be shared by threads.
    """

    def __init__(self, share: Share, serving: Serving) -> None:
        """`Memory.open` is the usual way."""
        self._share = share
        self._in_force = Served(serving)

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

        `path` and `pipeline` default to the environment, then to `.speckit/memory.db`, and to `.speckit/pipeline.yaml`
        or else the shipped pipeline; a pipeline is a path, a preset's name, a mapping of the form of a file, or what
        was read or derived of these; `root` is the folder that keys are relative to; `overrides` maps "step.parameter"
        to a YAML value; in `strict` mode failures of steps are raised; without `shadows` no other pipeline runs beside
        this one, and nothing is recorded of searches; with `stand_in` the shipped pipeline answers where files or the
        environment decide on one that cannot be used. Raises SpeckitError.

        When another file takes the store's path, or its state is set back, that one is opened and served; a file that
        is deleted is made anew by what writes, if `create` is given.
        """
        config = settings(path, None, root, environ)
        source: PipelineSource = config.pipeline
        if pipeline is not None and pipeline != "":
            source, config = pipeline, _chosen(config, pipeline)
        # the files come first: a wrong one is reported before a store is created
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

        share = Share(Following(opened, create=create, measured=not shadows))
        return cls(share, serving_of(config, searching, recorder) if shadows else Serving(config, searching))

    def using(self, pipeline: PipelineSource, overrides: Mapping[str, str] | None = None) -> Memory:
        """The same open store and models through another pipeline: `with memory.using("bm25") as other:`.

        Each of them is closed on its own, in any order; the store, when the last one is. Raises SpeckitError with all
        that is wrong with the pipeline, and E027 when this one was closed.
        """
        config = replace(_chosen(self.settings, pipeline), overrides=overrides or {})
        searching = Searching.through(pipeline, config, overrides, strict=self._searching.runner.strict)
        return Memory(self._share.another(), Serving(config, searching))

    def beside(self, *pipelines: PipelineSource) -> Memory:
        """The same open store and pipeline, whose searches bring the answers of other pipelines as well, each to the
        same query over the same state: `with memory.beside("bm25") as both: both.search("why?").beside`.

        The results themselves are those of this pipeline. Steps that both have run once. It is closed on its own.
        Raises SpeckitError with all that is wrong with the pipelines.
        """
        now = self._in_force.now
        shadows = beside_searches(now.searching, now.settings, self._open.recorder, inline=pipelines)
        return Memory(self._share.another(), Serving(now.settings, now.searching, shadows))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends this use of the store; whatever is asked after that raises E027. It may be repeated.

        Dark runs that have not ended are waited for a moment, and counted where they do not end.
        """
        self.end_shadows()
        self._share.end()

    @staticmethod
    def end_extensions() -> None:
        """Ends the processes of isolated extensions; for who ends this process without the interpreter's shutdown."""
        components.end_extensions()

    @property
    def _followed(self) -> Following:
        return self._share.store

    @property
    def _open(self) -> OpenStore:
        return self._followed.current

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """How often the file at the store's path turned out to be another one, or to have been set back."""
        return tuple(self._followed.replacements)

    def make_again(self) -> None:
        """Makes the store's file anew when it was taken away. Raises as opening a store does."""
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
        """The model that makes vectors."""
        return self._open.embedder

    @property
    def analyser(self) -> Analyser:
        """The analyser that makes words."""
        return self._open.analyser

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text costs a language model, never too low by more than a few per cent (feature T24)."""
        return counted_tokens(texts, self._open.counter)

    def load_vectors(self) -> None:
        """Reads all vectors into memory now, which searches do once they are many: for a process that has the time."""
        self._followed.run(lambda opened: opened.read_model.load_vectors())

    def keep_segment(self) -> None:
        """Has a thread of low priority keep the store's segment near its state, beside the answers: for a process that
        lives long. A program that still searches a minute after it opened the store gets one by itself."""
        self._followed.upkeep.begin()

    def keep_maintained(self) -> None:
        """Has that thread do the background work too, whenever some is due: see `maintain`; and replay what waits for
        the shadows of this pipeline, in moments in which nothing is asked. For a server."""
        self._followed.upkeep.begin(jobs=True, replay=self._replay)

    def write_segment(self) -> None:
        """Writes the store's segment now, due or not: the file that searches are answered from without a wait.

        Raises E029 when it cannot be written; answers are the same without it.
        """
        self._followed.run(lambda opened: write(opened, only_if_due=False))

    def store(self) -> Store:
        """The current state of the store, as the pipeline sees it.

        It is of one state as long as nobody writes; a search is whatever others do: see `pipeline.ports.protocols`.
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
        adjust: Adjustment | None = None,
        snippet: int = 400,
        content: bool = False,
        query_id: str = "",
    ) -> SearchResult:
        """One query through the pipeline. "Words in quotes" are required and a -word is left out (docs/queries.md).

        `folder` restricts to a folder and its sub-folders; two to five `concepts` must all match, what matches is
        ranked by `text` if there is one; the mode "resume" looks for hand-overs, and for the words that name the work
        beside them; `anchors` are the only sections wanted; `token_usage` is the share of the
        caller's context window in use, [0, 1]; without `dedup` a session is shown again what it was sent; `intent` is
        one of seven (docs/queries.md), "" for none, and found in the words unless it is given; `adjust` is what this
        search wants otherwise than the pipeline says; what does not do that as it is runs with nothing beside it. After
        `deadline_ms` what is costly or optional is left out and the answer says so; opening the store does not count,
        and None or 0 is no deadline. That and `now` (epoch seconds) make a search reproducible. `snippet` is the length
        of the texts shown, 0 for none; `content` adds the whole text of every memory. `query_id`, 16 hexadecimal
        digits, names the query where it is noted; it has one of its own unless it is given. Call `served` with the
        result once it has reached the reader. Raises SpeckitError on a bad question.
        """

        question = Question(
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
        """Notes that the first `count` results (all unless given) have reached the caller: they were of use, and the
        session knows them and attends to them. Those whose whole text or sections it got, it has opened.

        Whoever shows an answer calls this, so that what was cut off does not count. Returns a warning when the session
        could not be told, else "". Uses are counted, and the answer is noted for comparisons, a little later, off the
        path of the answer.
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
            session_events.served(opened.database, result, shown, remembered=remembered)
        except SpeckitError as error:
            return f"this answer could not be noted in the session, it may be repeated: {error}"
        return ""

    def write_notes(self) -> None:
        """Writes now what answers have left behind, which a thread writes within the next seconds otherwise."""
        opened = self._open
        opened.usage.write()
        opened.recorder.write()

    def plan(
        self, text: str, *, limit: int = 10, folder: str = "", mode: Mode = "auto", token_usage: float | None = None
    ) -> PlanReport:
        """What a search would do, without doing it."""
        question = Question(text=text, limit=limit, folder=folder, mode=mode, token_usage=token_usage)

        return self._followed.run(lambda opened: self._searching.plan(opened, question))

    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key. Raises E080."""
        return self._followed.run(lambda opened: reader.get_memory(opened.database.reader(), name))

    def list(
        self, folder: str = "", sort: str = "created_at", limit: int = 20, offset: int = 0
    ) -> tuple[list[MemoryRecord], int]:
        """One page of the memories of a folder and its sub-folders, and how many there are altogether."""
        below = normalised_folder(folder)
        return self._followed.run(
            lambda opened: reader.list_memories(opened.database.reader(), below, sort, limit, offset)
        )

    def health(self) -> HealthReport:
        """Whether everything that a search needs is in order.

        Raises SpeckitError for a store that was replaced by what cannot be opened.
        """
        # imported by who asks for it
        from speckit_memory.engine.diagnostics.health import Examined, health

        self._followed.run(lambda opened: opened.database.latest())
        # nobody asks this for the sake of the answer
        unwatched = Memory(self._share, Serving(self.settings, self._searching))
        ask = partial(unwatched.search, limit=3, deadline_ms=None)
        files = self.look_at_files()
        return health(Examined(self._open, self._in_force.now, self.replacements, ask, self.shadows, files))

    def check(self, *, every_word: bool = True) -> tuple[str, ...]:
        """What is wrong with the store's file, one sentence each; empty when it is healthy.

        Comparing the words of its full-text rows takes some seconds per million words. Without `every_word` only a part
        of those is compared in a store of more than half a million, as by `health`, which says of how many.
        """
        return self._followed.run(lambda opened: checked(opened.database, every_word=every_word).wrong)

    def graph(self) -> GraphReport:
        """How dense the causal graph is, who made its edges, and what is computed of it."""
        from speckit_memory.engine.graph.report import report

        return self._followed.run(lambda opened: report(opened.database.reader()))

    def stats(self) -> reader.StoreStatistics:
        """How much the store holds."""
        return self._followed.run(lambda opened: reader.statistics(opened.database.reader()))


def _chosen(config: Settings, pipeline: PipelineSource) -> Settings:
    """The settings with the pipeline that a call chose."""
    by = BY_CALL if isinstance(pipeline, str | Path) else BY_VALUE
    return replace(config, pipeline=name_of(pipeline), pipeline_by=by)
