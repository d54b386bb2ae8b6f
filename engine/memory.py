"""The product as a Python object: one store, one pipeline, every operation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from speckit_memory.config.deadline import deadline_in_force, deadline_of
from speckit_memory.config.settings import BY_CALL, BY_VALUE, Settings, settings
from speckit_memory.engine import assembly, events
from speckit_memory.engine.answer import explanation
from speckit_memory.engine.following import Following, Replacement
from speckit_memory.engine.health import Examined, HealthReport, health
from speckit_memory.engine.plans import PlanReport
from speckit_memory.engine.questions import Question, normalised_folder, texts
from speckit_memory.engine.remembering import Remembering
from speckit_memory.engine.results import Explanation, SearchResult
from speckit_memory.engine.searching import Searching
from speckit_memory.engine.sharing import Share
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser
from speckit_memory.memory.indexing.embedders import Embedder, counted_tokens
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.identity import ReplacedError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.composition import Pipeline
from speckit_memory.pipeline.loading import PipelineSource, name_of
from speckit_memory.pipeline.model import Mode
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.view import StoreView


class Memory(Remembering):
    """Everything remembered in one file, searchable through one pipeline.

    Use it as a context manager. One object may be shared by threads.
    """

    def __init__(self, share: Share, config: Settings, searching: Searching) -> None:
        """`Memory.open` is the usual way."""
        self.settings = config
        self._share = share
        self._searching = searching

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
    ) -> Self:
        """Opens a store, creating it unless `create` is false.

        `path` and `pipeline` default to the environment, then to `.speckit/memory.db`, and to `.speckit/pipeline.yaml`
        or else the shipped pipeline; a pipeline is a path, a preset's name, a mapping of the form of a file, or what
        was read or derived of these; `root` is the folder that keys are relative to; `overrides` maps "step.parameter"
        to a YAML value; in `strict` mode failures of steps are raised. Raises SpeckitError.

        When another file takes the store's path, or its state is set back, that one is opened and served; a file that
        is deleted is made anew by what writes, if `create` is given.
        """
        config = settings(path, None, root, environ)
        source: PipelineSource = config.pipeline
        if pipeline is not None and pipeline != "":
            source, config = pipeline, _chosen(config, pipeline)
        # the files come first: a wrong one is reported before a store is created
        config = replace(config, deadline_ms=deadline_in_force(config), overrides=overrides or {})
        searching = Searching.through(source, config, overrides, strict=strict)
        models = assembly.TextModels(config.environ)

        def opened(may_create: bool) -> assembly.OpenStore:
            return assembly.OpenStore(Database.open(config.db, create=may_create), config.root, models)

        return cls(Share(Following(opened, create=create)), config, searching)

    def using(self, pipeline: PipelineSource, overrides: Mapping[str, str] | None = None) -> Memory:
        """The same open store and models through another pipeline: `with memory.using("bm25") as other:`.

        Each of them is closed on its own, in any order; the store, when the last one is. Raises SpeckitError with all
        that is wrong with the pipeline, and E027 when this one was closed.
        """
        config = replace(_chosen(self.settings, pipeline), overrides=overrides or {})
        searching = Searching.through(pipeline, config, overrides, strict=self._searching.runner.strict)
        return Memory(self._share.another(), config, searching)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends this use of the store; whatever is asked after that raises E027. It may be repeated."""
        self._share.end()

    @staticmethod
    def end_extensions() -> None:
        """Ends the processes of isolated extensions; for who ends this process without the interpreter's shutdown."""
        assembly.end_extensions()

    @property
    def _followed(self) -> Following:
        return self._share.store

    @property
    def _open(self) -> assembly.OpenStore:
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
    def pipeline(self) -> Pipeline:
        """The pipeline in use."""
        return self._searching.runner.pipeline

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
        return counted_tokens(texts, self.embedder)

    def load_vectors(self) -> None:
        """Reads all vectors into memory now, which searches do once they are many: for a process that has the time."""
        self._followed.run(lambda opened: opened.read_model.load_vectors())

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
        snippet: int = 400,
        content: bool = False,
    ) -> SearchResult:
        """One query through the pipeline. "Words in quotes" are required and a -word is left out (docs/queries.md).

        `folder` restricts to a folder and its sub-folders; two to five `concepts` must all match, what matches is
        ranked by `text` if there is one; the mode "resume" looks for the sections of hand-over documents, and for the
        words only where there are none; `anchors` are the only sections wanted; `token_usage` is the share of the
        caller's context window in use, [0, 1]; without `dedup` a session is shown again what it was sent. After
        `deadline_ms` what is costly or optional is left out and the answer says so; opening the store does not count,
        and None or 0 is no deadline. That and `now` (epoch seconds) make a search reproducible. `snippet` is the length
        of the texts shown, 0 for none; `content` adds the whole text of every memory. Call `served` with the result
        once it has reached the reader. Raises SpeckitError on a bad question.
        """

        question = Question(
            text=text, limit=limit, folder=folder, tier=tier, context_type=context_type, mode=mode, session=session,
            concepts=texts(concepts, "concepts"), anchors=texts(anchors, "anchors"), token_usage=token_usage,
            dedup=dedup,
        )  # fmt: skip
        set_ms = self.settings.deadline_ms
        allowed_ms = set_ms if deadline_ms == "setting" else deadline_of(deadline_ms or 0, "deadline_ms")

        def found(opened: assembly.OpenStore) -> SearchResult:
            asked = time.time() if now is None else now
            result = self._searching.search(
                opened, question, now=asked, allowed_ms=allowed_ms, snippet=snippet, content=content
            )
            return replace(result, origin=opened.name)

        return self._followed.run(found)

    def served(self, result: SearchResult, count: int | None = None) -> str:
        """Notes that the first `count` results (all unless given) have reached the caller: they were of use, and the
        session knows them.

        Whoever shows an answer calls this, so that what was cut off does not count. Returns a warning when the session
        could not be told, else "". Uses are counted a little later, off the path of the answer.
        """
        outcome, opened = result.outcome, self._open
        if result.origin != opened.name:
            return ""  # its ids are those of another store
        opened.usage.note(outcome.pool.candidates.parents[:count].tolist(), outcome.query.now)
        if any(step.about.looks_back for step in self.pipeline.annotate):
            try:
                events.served(opened.database, outcome, len(result.results) if count is None else count)
            except SpeckitError as error:
                return f"this answer could not be noted in the session, it may be repeated: {error}"
        return ""

    def plan(
        self, text: str, *, limit: int = 10, folder: str = "", mode: Mode = "auto", token_usage: float | None = None
    ) -> PlanReport:
        """What a search would do, without doing it."""
        question = Question(text=text, limit=limit, folder=folder, mode=mode, token_usage=token_usage)

        return self._followed.run(lambda opened: self._searching.plan(opened, question))

    def explain(self, result: SearchResult, name: int | str) -> Explanation:
        """How a result got its score, step by step. Raises E080 when the memory is not among the results."""
        row = next((row for row in result.results if name in (row.id, row.key)), None)
        found = explanation(result.outcome, self._state_of(result), row.id) if row else None
        if found is None:
            raise SpeckitError("E080", f"'{name}' is not among the results; ask why_not instead")
        return found

    def why_not(self, result: SearchResult, name: int | str) -> str:
        """Why a memory is not among the results: the step that lost it, and what would have kept it."""
        store = self._state_of(result)
        return self._searching.why_not(result, self.get(name), store)

    def _state_of(self, result: SearchResult) -> Store:
        """The current state of the store that gave an answer. Raises E026 when it is another one by now."""
        store = self.store()
        if result.origin != self._open.name:
            raise SpeckitError("E026", "the store was replaced since this search", actions=("search again",))
        return store

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
        self._followed.run(lambda opened: opened.database.latest())
        ask = partial(self.search, limit=3, deadline_ms=None)
        return health(Examined(self._open, self.settings, self.pipeline, self.replacements, ask))

    def check(self) -> tuple[str, ...]:
        """What is wrong with the store's file, one sentence each; empty when it is healthy."""
        return self._followed.run(lambda opened: tuple(opened.database.check()))

    def stats(self) -> reader.StoreStatistics:
        """How much the store holds."""
        return self._followed.run(lambda opened: reader.statistics(opened.database.reader()))


def _chosen(config: Settings, pipeline: PipelineSource) -> Settings:
    """The settings with the pipeline that a call chose."""
    by = BY_CALL if isinstance(pipeline, str | Path) else BY_VALUE
    return replace(config, pipeline=name_of(pipeline), pipeline_by=by)
