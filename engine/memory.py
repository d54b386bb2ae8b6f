"""The product as a Python object: one store, one pipeline, every operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from config.errors import SpeckitError, nearest
from config.settings import Settings, settings
from config.workspace_file import load_workspace_config
from engine import assembly, events
from engine.answer import answer, explanation
from engine.health import HealthReport, health
from engine.plans import PlanReport, plan_report
from engine.questions import Question, normalised_folder
from engine.results import Explanation, SearchResult
from engine.why_not import why_not
from memory.indexing import Analyser, IndexReport, Progress, Saved, Source
from memory.indexing.embedders.protocol import Embedder
from memory.lifecycle import validations
from memory.store import reader
from memory.store.connection import Database
from memory.store.edges import add_edge
from memory.store.records import Memory as MemoryRecord
from memory.store.records import Relation
from pipeline.builder import build
from pipeline.composition import Pipeline
from pipeline.model import Mode
from pipeline.ports import Store
from pipeline.runner import Runner

DEADLINE_MS = 2_000.0
"""After this long, optional steps are skipped and the answer says so. Far above every budget: a safety net."""


class Memory:
    """Everything remembered in one file, searchable through one pipeline.

    Use it as a context manager. One object may be shared by threads.
    """

    def __init__(self, store: assembly.OpenStore, config: Settings, runner: Runner) -> None:
        """`Memory.open` is the usual way."""
        self.settings = config
        self._open = store
        self._runner = runner

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        pipeline: str | None = None,
        *,
        root: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        create: bool = True,
        strict: bool = False,
        overrides: Mapping[str, str] | None = None,
    ) -> Self:
        """Opens a store, creating it unless `create` is false.

        `path` and `pipeline` default to the environment and then to `.speckit/memory.db` and the shipped pipeline;
        `root` is the folder that keys are relative to; `overrides` maps "step.parameter" to a YAML value; in `strict`
        mode failures of steps are raised. Raises SpeckitError.
        """
        config = settings(path, pipeline, root, environ)
        # the files come first: a wrong one is reported before a store is created
        load_workspace_config(config.root)
        runner = Runner(build(config.pipeline, assembly.registry(), config.environ, overrides), strict=strict)
        store = assembly.OpenStore(Database.open(config.db, create=create), config.root, config.environ)
        return cls(store, config, runner)

    def with_pipeline(self, pipeline: str, overrides: Mapping[str, str] | None = None) -> Memory:
        """The same open store through another pipeline. Close either of the two, not both."""
        config = replace(self.settings, pipeline=pipeline)
        built = build(pipeline, assembly.registry(), config.environ, overrides)
        return Memory(self._open, config, Runner(built, strict=self._runner.strict))

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

    def store(self) -> Store:
        """The current state of the store, as the pipeline sees it."""
        return self._open.read_model.current()

    def index(
        self,
        paths: Sequence[str | Path],
        *,
        force: bool = False,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> IndexReport:
        """Brings the store up to date with these files and folders (features I1–I8), and remembers them as sources.

        What is named is taken, hidden or ignored as it may be; below a folder, what `docs/workspace.md` says.
        A file that cannot be read or parsed is reported with its reason; the rest is indexed.
        """
        absolute = [Path(path).expanduser().resolve() for path in paths]
        return self._open.indexer.index(absolute, force=force, dry_run=dry_run, now=time.time(), progress=progress)

    def forget(self, paths: Sequence[str | Path], *, dry_run: bool = False) -> IndexReport:
        """Forgets the sources at and below these paths, with every memory that no other source holds. Raises E014."""
        absolute = [Path(path).expanduser().resolve() for path in paths]
        return self._open.indexer_without_model.forget(absolute, dry_run=dry_run, now=time.time())

    def sources(self) -> dict[str, bool]:
        """What was indexed by name, by key ("" is the root), and whether it would be left out but for its name."""
        return self._open.indexer_without_model.sources()

    def index_documents(
        self, documents: Iterable[Source], *, progress: Callable[[Progress], None] | None = None
    ) -> IndexReport:
        """Indexes documents that do not come from files, such as those of a dataset."""
        return self._open.indexer.index_documents(documents, now=time.time(), progress=progress)

    def save_file(
        self, path: str | Path, *, force: bool = False, dry_run: bool = False, defer_embedding: bool = False
    ) -> Saved:
        """Saves one file after the pre-flight checks (feature I9).

        With `defer_embedding` the memory is stored at once, found by words alone, and embedded by the next index run.
        """
        indexer = self._open.indexer_without_model if defer_embedding else self._open.indexer
        return indexer.save_file(Path(path), force=force, dry_run=dry_run, now=time.time())

    def link(self, edges: Iterable[tuple[str, str, str, float]], created_by: str = "manual") -> int:
        """Adds causal edges (source key, relation, target key, strength); returns how many were added."""
        added = 0
        with self._open.database.write() as transaction:
            for source, relation, target, strength in edges:
                ends = [reader.get_memory(transaction.connection, key).id for key in (source, target)]
                add_edge(
                    transaction, ends[0], ends[1], _relation(relation), strength,
                    evidence="", created_by=created_by, now=time.time(),
                )  # fmt: skip
                added += 1
        return added

    def validate(self, name: int | str, *, useful: bool, promote: bool = False) -> validations.Validated:
        """Notes that a memory, by id or key, was useful, or was not: its confidence rises or falls (feature F17).

        With `promote` it is made critical after that. Raises E080, and E082 when it may not be; nothing is noted then.
        """
        return validations.validate(self._open.database, name, useful, promote=promote, now=time.time())

    def promote(self, name: int | str) -> validations.Validated:
        """Makes a memory critical that readers found useful often enough. Raises E080, E082."""
        return validations.promote(self._open.database, name, now=time.time())

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
        deadline_ms: float | None = DEADLINE_MS,
        concepts: Sequence[str] = (),
        anchors: Sequence[str] = (),
        token_usage: float | None = None,
        snippet: int = 400,
        content: bool = False,
    ) -> SearchResult:
        """One query through the pipeline. "Words in quotes" are required and a -word is left out (docs/queries.md).

        `folder` restricts to a folder and its sub-folders; two to five `concepts` must all match; `anchors` are the
        only sections wanted; `token_usage` is the share of the caller's context window in use, [0, 1]; `now` (epoch
        seconds) and `deadline_ms=None` make a search reproducible; `snippet` is the length of the texts shown, 0 for
        none; `content` adds the whole text of every memory. Call `served` with the result once it has reached the
        reader. Raises SpeckitError on a bad question.
        """
        store = self.store()
        question = Question(
            text=text, limit=limit, folder=folder, tier=tier, context_type=context_type, mode=mode, session=session,
            concepts=tuple(concepts), anchors=tuple(anchors), token_usage=token_usage,
        )  # fmt: skip
        deadline_ns = None if deadline_ms is None else time.perf_counter_ns() + int(deadline_ms * 1e6)
        query = question.query(store, time.time() if now is None else now, deadline_ns)
        declared = tuple(channel.id for channel in self.pipeline.candidates.channels)
        return answer(self._runner.run(query, store), store, declared, snippet, content)

    def served(self, result: SearchResult, count: int | None = None) -> str:
        """Notes that the first `count` results (all unless given) have reached the caller: they were of use, and the
        session knows them.

        Whoever shows an answer calls this, so that what was cut off does not count. Returns a warning when the session
        could not be told, else "". Uses are counted a little later, off the path of the answer.
        """
        outcome = result.outcome
        self._open.usage.note(outcome.pool.candidates.parents[:count].tolist(), outcome.query.now)
        if assembly.looks_back(self.pipeline):
            try:
                events.served(self._open.database, outcome, len(result.results) if count is None else count)
            except SpeckitError as error:
                return f"this answer could not be noted in the session, it may be repeated: {error}"
        return ""

    def plan(
        self, text: str, *, limit: int = 10, folder: str = "", mode: Mode = "auto", token_usage: float | None = None
    ) -> PlanReport:
        """What a search would do, without doing it."""
        store = self.store()
        question = Question(text=text, limit=limit, folder=folder, mode=mode, token_usage=token_usage)
        query = question.query(store, time.time(), None)
        return plan_report(self._runner, query, store)

    def explain(self, result: SearchResult, name: int | str) -> Explanation:
        """How a result got its score, step by step. Raises E080 when the memory is not among the results."""
        row = next((row for row in result.results if name in (row.id, row.key)), None)
        found = explanation(result.outcome, self.store(), row.id) if row else None
        if found is None:
            raise SpeckitError("E080", f"'{name}' is not among the results; ask why_not instead")
        return found

    def why_not(self, result: SearchResult, name: int | str) -> str:
        """Why a memory is not among the results: the step that lost it, and what would have kept it."""
        return why_not(self._runner, result, self.get(name), self.store())

    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key. Raises E080."""
        return reader.get_memory(self._open.database.reader(), name)

    def list(
        self, folder: str = "", sort: str = "created_at", limit: int = 20, offset: int = 0
    ) -> tuple[list[MemoryRecord], int]:
        """One page of the memories of a folder and its sub-folders, and how many there are altogether."""
        return reader.list_memories(self._open.database.reader(), normalised_folder(folder), sort, limit, offset)

    def health(self) -> HealthReport:
        """Whether everything that a search needs is in order."""
        return health(self)

    def stats(self) -> reader.StoreStatistics:
        """How much the store holds."""
        return reader.statistics(self._open.database.reader())


def _relation(name: str) -> Relation:
    if name not in list(Relation):
        raise SpeckitError("E030", f"the relation is '{name}'; {nearest(name, list(Relation))}")
    return Relation(name)
