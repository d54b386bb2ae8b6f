"""The product as a Python object: one store, one pipeline, every operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from speckit_memory.config.deadline import deadline_in_force, deadline_of
from speckit_memory.config.files.paths import named_path, named_paths
from speckit_memory.config.settings import BY_CALL, BY_VALUE, Settings, settings
from speckit_memory.engine import assembly, events, resuming
from speckit_memory.engine.answer import answer, explanation
from speckit_memory.engine.committed_progress import CommittedProgress
from speckit_memory.engine.empty_answers import EMPTY_STORE
from speckit_memory.engine.following import Following, Replacement
from speckit_memory.engine.health import HealthReport, health
from speckit_memory.engine.plans import PlanReport, plan_report
from speckit_memory.engine.questions import Question, normalised_folder
from speckit_memory.engine.results import Explanation, SearchResult
from speckit_memory.engine.why_not import why_not
from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.indexing import Analyser, IndexReport, Progress, Saved, Source
from speckit_memory.memory.indexing.embedders import Embedder, counted_tokens
from speckit_memory.memory.lifecycle import validations
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.identity import ReplacedError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord, Relation
from speckit_memory.memory.store.tables.edges import add_edge
from speckit_memory.pipeline.builder import build
from speckit_memory.pipeline.clock import opening, opening_ns, query_ns
from speckit_memory.pipeline.composition import Pipeline
from speckit_memory.pipeline.loading import PipelineSource, name_of
from speckit_memory.pipeline.model import Mode, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.registry import Registry
from speckit_memory.pipeline.runner import Runner
from speckit_memory.pipeline.view import StoreView


class Memory:
    """Everything remembered in one file, searchable through one pipeline.

    Use it as a context manager. One object may be shared by threads.
    """

    def __init__(self, store: Following, config: Settings, runner: Runner) -> None:
        """`Memory.open` is the usual way."""
        self.settings = config
        self._followed = store
        self._runner = runner

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
        built = build(source, _registry(config), config.environ_of_root, overrides)
        runner = Runner(built, strict=strict)
        models = assembly.TextModels(config.environ)

        def opened(may_create: bool) -> assembly.OpenStore:
            return assembly.OpenStore(Database.open(config.db, create=may_create), config.root, models)

        return cls(Following(opened, create=create), config, runner)

    def with_pipeline(self, pipeline: PipelineSource, overrides: Mapping[str, str] | None = None) -> Memory:
        """The same open store through another pipeline. Close either of the two, not both."""
        config = replace(_chosen(self.settings, pipeline), overrides=overrides or {})
        built = build(pipeline, _registry(config), config.environ_of_root, overrides)
        return Memory(self._followed, config, Runner(built, strict=self._runner.strict))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store."""
        self._open.usage.write()
        self._open.database.close()

    @staticmethod
    def end_extensions() -> None:
        """Ends the processes of isolated extensions; for who ends this process without the interpreter's shutdown."""
        assembly.end_extensions()

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
        return self._runner.pipeline

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

    def store(self) -> Store:
        """The current state of the store, as the pipeline sees it.

        It is of one state as long as nobody writes; a search is whatever others do: see `pipeline.ports.protocols`.
        """
        return StoreView(self._followed.run(lambda opened: opened.read_model.current()))

    def index(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        force: bool = False,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> IndexReport:
        """Brings the store up to date with files and folders, one or many (I1–I8), and remembers them as sources.

        What is named is taken, hidden or ignored as it may be; below a folder, what `docs/workspace.md` says.
        A file that cannot be read or parsed is reported with its reason; the rest is indexed. Raises E014, and E030 for
        what is no path.
        """
        named = named_paths(paths)
        committed = CommittedProgress(progress)

        def run(opened: assembly.OpenStore) -> IndexReport:
            with committed.reported_on_error():
                return opened.indexer.index(named, force=force, dry_run=dry_run, now=time.time(), progress=committed)

        return self._followed.run(run, writes=not dry_run)

    def forget(self, paths: str | Path | Iterable[str | Path], *, dry_run: bool = False) -> IndexReport:
        """Forgets the sources at and below these paths, with every memory that no other source holds. Raises E014."""
        named = named_paths(paths)
        return self._followed.run(
            lambda opened: opened.indexer_without_model.forget(named, dry_run=dry_run, now=time.time())
        )

    def sources(self) -> dict[str, bool]:
        """What was indexed by name, by key ("" is the root), and whether it would be left out but for its name."""
        return self._followed.run(lambda opened: opened.indexer_without_model.sources())

    def index_documents(
        self, documents: Iterable[Source], *, progress: Callable[[Progress], None] | None = None
    ) -> IndexReport:
        """Indexes documents that do not come from files, such as those of a dataset."""
        return self._followed.run(
            lambda opened: opened.indexer.index_documents(documents, now=time.time(), progress=progress),
            writes=True,
            repeatable=isinstance(documents, Sequence),  # others can be gone through once
        )

    def save_file(
        self, path: str | Path, *, force: bool = False, dry_run: bool = False, defer_embedding: bool = False
    ) -> Saved:
        """Saves one file after the pre-flight checks (feature I9).

        With `defer_embedding` the memory is stored at once, found by words alone, and embedded by the next index run.
        """
        file = named_path(path)

        def save(opened: assembly.OpenStore) -> Saved:
            indexer = opened.indexer_without_model if defer_embedding else opened.indexer
            return indexer.save_file(file, force=force, dry_run=dry_run, now=time.time())

        return self._followed.run(save, writes=not dry_run)

    def link(self, edges: Iterable[tuple[str, str, str, float]], created_by: str = "manual") -> int:
        """Adds causal edges (source key, relation, target key, strength); returns how many were added."""
        wanted = tuple(edges)

        def add(opened: assembly.OpenStore) -> int:
            with opened.database.write() as transaction:
                for source, relation, target, strength in wanted:
                    ends = [reader.get_memory(transaction.connection, key).id for key in (source, target)]
                    add_edge(
                        transaction, ends[0], ends[1], _relation(relation), strength,
                        evidence="", created_by=created_by, now=time.time(),
                    )  # fmt: skip
            return len(wanted)

        return self._followed.run(add, writes=True)

    def validate(self, name: int | str, *, useful: bool, promote: bool = False) -> validations.Validated:
        """Notes that a memory, by id or key, was useful, or was not: its confidence rises or falls (feature F17).

        With `promote` it is made critical after that. Raises E080, and E082 when it may not be; nothing is noted then.
        """
        return self._followed.run(
            lambda opened: validations.validate(opened.database, name, useful, promote=promote, now=time.time()),
            repeatable=False,  # it would count twice
        )

    def promote(self, name: int | str) -> validations.Validated:
        """Makes a memory critical that readers found useful often enough. Raises E080, E082."""
        return self._followed.run(
            lambda opened: validations.promote(opened.database, name, now=time.time()), repeatable=False
        )

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

        def found(store: Store, opened_before: int) -> SearchResult:
            question = Question(
                text=text, limit=limit, folder=folder, tier=tier, context_type=context_type, mode=mode, session=session,
                concepts=tuple(concepts), anchors=tuple(anchors), token_usage=token_usage, dedup=dedup,
            )  # fmt: skip
            allowed = (
                self.settings.deadline_ms if deadline_ms == "setting" else deadline_of(deadline_ms or 0, "deadline_ms")
            )
            deadline_ns = None if allowed is None else query_ns() + int(allowed * 1e6)
            query = question.query(store, time.time() if now is None else now, deadline_ns)
            run = partial(self._answer, store=store, snippet=snippet, content=content, opened_before=opened_before)
            if resuming.asks_for_handover(query):
                handovers = run(self._handovers, resuming.of_handovers(query))
                if handovers.results or handovers.why_nothing == EMPTY_STORE:
                    return handovers
                latest = resuming.only_asks_to_go_on(query, store)
                result = run(self._handovers if latest else self._runner, query)
                instead = "this was changed last" if latest else "this is what the words find"
                return result.warned(before=[resuming.no_handover(query, instead)])
            return run(self._runner, query)

        def answered(opened: assembly.OpenStore) -> SearchResult:
            opened_before = opening_ns()
            with ExitStack() as search:
                with opening():
                    store = search.enter_context(opened.read_model.reading())
                return replace(found(store, opened_before), origin=opened.name)

        return self._followed.run(answered)

    def _answer(
        self, runner: Runner, query: Query, *, store: Store, snippet: int, content: bool, opened_before: int
    ) -> SearchResult:
        declared = tuple(channel.id for channel in runner.pipeline.candidates.channels)
        outcome = runner.run(query, store)
        return answer(outcome, store, declared, snippet, content, opening_ns() - opened_before)

    @cached_property
    def _handovers(self) -> Runner:
        """What answers in the mode "resume"."""
        built = build(resuming.PIPELINE, _registry(self.settings), self.settings.environ)
        return Runner(built, strict=self._runner.strict)

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
        if assembly.looks_back(self.pipeline):
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

        def planned(opened: assembly.OpenStore) -> PlanReport:
            with opened.read_model.reading() as snapshot:
                store = StoreView(snapshot)
                query = question.query(store, time.time(), None)
                if resuming.asks_for_handover(query):
                    return plan_report(self._handovers, resuming.of_handovers(query), store)
                return plan_report(self._runner, query, store)

        return self._followed.run(planned)

    def explain(self, result: SearchResult, name: int | str) -> Explanation:
        """How a result got its score, step by step. Raises E080 when the memory is not among the results."""
        row = next((row for row in result.results if name in (row.id, row.key)), None)
        found = explanation(result.outcome, self._state_of(result), row.id) if row else None
        if found is None:
            raise SpeckitError("E080", f"'{name}' is not among the results; ask why_not instead")
        return found

    def why_not(self, result: SearchResult, name: int | str) -> str:
        """Why a memory is not among the results: the step that lost it, and what would have kept it."""
        runner = self._handovers if resuming.is_of_handovers(result.outcome) else self._runner
        store = self._state_of(result)
        return why_not(runner, result, self.get(name), store)

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
        return health(self)

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


def _registry(config: Settings) -> Registry:
    return assembly.registry(config.environ, config.root)


def _relation(name: str) -> Relation:
    if name not in list(Relation):
        raise SpeckitError("E030", f"the relation is '{name}'; {nearest(name, list(Relation))}")
    return Relation(name)
