"""The public Python object: one store, one pipeline, every operation."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from speckit_memory.config.files.paths import named_paths
from speckit_memory.config.workspace.workspace_file import deadline_of
from speckit_memory.engine.answers.request import SearchRequest, normalised_folder, parameters_of
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.engine.documents.committed_progress import CommittedProgress
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.serving.serving import ConfigurationState
from speckit_memory.engine.serving.start_shadows import beside_searches
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.engine.session.usage_events import noting_written
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.configuration.loading import PipelineSource

if TYPE_CHECKING:
    from speckit_memory.engine.api.checkpoints import CheckpointService
    from speckit_memory.engine.api.deletions import DeletionService
    from speckit_memory.engine.api.documents import DocumentService
    from speckit_memory.engine.api.exchange import ExchangeService
    from speckit_memory.engine.api.explain import ExplainService
    from speckit_memory.engine.api.feedback import FeedbackService
    from speckit_memory.engine.api.graph import GraphService
    from speckit_memory.engine.api.inventory import InventoryService
    from speckit_memory.engine.api.learning import LearningService
    from speckit_memory.engine.api.lifecycle import LifecycleService
    from speckit_memory.engine.api.models import ModelService
    from speckit_memory.engine.api.pipelines import PipelineService
    from speckit_memory.engine.api.shadows import ShadowService
    from speckit_memory.engine.api.triggers import TriggerService
    from speckit_memory.engine.diagnostics.health_report import HealthReport
    from speckit_memory.memory.indexing import IndexProgress, IndexReport, Source


class Memory:
    """Everything remembered in one file, searchable through one pipeline.

    Use it as a context manager. Threads may share one object.
    """

    documents: DocumentService
    """Saves, edits, reads and forgets documents."""
    deletions: DeletionService
    """Deletes memories with their files, and restores them."""
    checkpoints: CheckpointService
    """Creates and restores checkpoints."""
    exchange: ExchangeService
    """Exports memories to files, and imports them."""
    graph: GraphService
    """Links memories, and reports on the causal graph."""
    triggers: TriggerService
    """Matches prompts with trigger phrases, and keeps learned phrases."""
    learning: LearningService
    """Records tasks and judgements."""
    lifecycle: LifecycleService
    """Runs background work, and checks and repairs the store."""
    models: ModelService
    """The models in use, and changes of the embedding model."""
    explain: ExplainService
    """Explains answers, absences and plans."""
    shadows: ShadowService
    """Reports on variants, and replays queries for them."""
    feedback: FeedbackService
    """Records what became of answers."""
    pipelines: PipelineService
    """The pipeline in force, and the files it follows."""
    inventory: InventoryService
    """Lists what the store contains."""

    def __init__(self, session: StoreSession) -> None:
        """Use `Memory.open` instead."""
        self.session = session

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Imports a service when it is first used: a search needs few of them."""
            if (kind := Memory.__annotations__.get(name)) is None:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            service = getattr(import_module(f"speckit_memory.engine.api.{name}"), kind)(self.session)
            setattr(self, name, service)
            return service

    @classmethod
    @parameters_of(StoreSession.open)
    def open(cls, session: StoreSession) -> Self:
        """Opens a store: `with Memory.open("memory.db", "balanced") as memory:`."""
        return cls(session)

    def using(self, pipeline: PipelineSource, overrides: Mapping[str, str] | None = None) -> Memory:
        """The same open store and models through another pipeline: `with memory.using("bm25") as other:`.

        Each object is closed separately, in any order; the store closes with the last one. Raises SpeckitError with all
        problems of the pipeline, and E027 if this object is closed.
        """
        return Memory(self.session.using(pipeline, overrides))

    def with_shadows(self, *pipelines: PipelineSource) -> Memory:
        """The same store and pipeline, with the answers of other pipelines attached to each result for comparison.

        `with memory.with_shadows("bm25") as both: both.search("why?").beside`. The results themselves are those of this
        pipeline; the others answer the same query over the same snapshot, and steps that they share run once. Close it
        separately. Raises SpeckitError with all problems of the pipelines.
        """
        now = self.session.configuration.now
        shadows = beside_searches(now.searching, now.settings, self.session.opened.recorder, inline=pipelines)
        return Memory(self.session.another(ConfigurationState(now.settings, now.searching, shadows)))

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
        self.session.configuration.end()
        self.session.end()

    @parameters_of(SearchRequest)
    def search(self, request: SearchRequest) -> SearchResult:
        """Runs one query through the pipeline: `search("why?", limit=5)`; see `SearchRequest` for the parameters.

        "Words in quotes" are required, a -word is excluded (docs/queries.md). Call `feedback.delivered` with the result
        once it has reached the reader. Raises SpeckitError for parameters that are not accepted.
        """
        request.require_types()
        self.pipelines.reload()
        deadline_ms = request.deadline_ms
        set_ms = self.session.settings.deadline_ms
        allowed_ms = set_ms if deadline_ms == "setting" else deadline_of(deadline_ms or 0, "deadline_ms")
        query_id = request.query_id or secrets.token_hex(8)

        def found(opened: OpenStore) -> SearchResult:
            asked = time.time() if request.now is None else request.now
            if watched:
                watched.again()
            return wished.searching.search(
                opened,
                request,
                now=asked,
                allowed_ms=allowed_ms,
                query_id=query_id,
                recorded=noted,
                watched=watched,
                wished=wished,
            )

        self.session.upkeep.asked()
        with SERVING.serving(), self.session.configuration.using() as serving:
            wished = serving.searching.wished(request.adjust, request.session)
            watched = serving.watched(query_id) if wished.searching is serving.searching else None
            noted = serving.shadows is not None or serving.replays is not None
            try:
                return self.session.read(found).warned(after=self.pipelines.warnings)
            finally:
                if watched:
                    watched.over()

    def index(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        force: bool = False,
        dry_run: bool = False,
        progress: Callable[[IndexProgress], None] | None = None,
        processes: int = 0,
        include_constitutional: bool = True,
        include_spec_docs: bool = True,
    ) -> IndexReport:
        """Brings the store up to date with files and folders (I1–I8), and remembers them as sources.

        A path that is named is indexed even if it is hidden or ignored; below a folder the rules of `docs/workspace.md`
        apply. A file that cannot be read or parsed is reported with its reason; the rest is indexed.

        Args:
            paths: One or several files and folders.
            force: Index files again that have not changed.
            dry_run: Report the changes without making them.
            progress: Called with each step of the work.
            processes: Further processes that read and analyse; used from a thousand files on.
            include_constitutional: If false, documents in folders named `constitutional` are left alone: neither read
                nor deleted. Memories still follow files that move into or out of such folders.
            include_spec_docs: The same for spec documents below `specs`.

        Raises:
            SpeckitError: E014 for a path that does not exist, E030 for a value that is no path.
        """
        from speckit_memory.memory.scanning.exclusions import kinds_left_alone

        leave = kinds_left_alone(constitutional=include_constitutional, spec_docs=include_spec_docs)
        named = named_paths(paths)
        committed = CommittedProgress(progress)

        def run(opened: OpenStore) -> IndexReport:
            with committed.reported_on_error(), noting_written(opened):
                return opened.indexer.index(
                    named,
                    force=force,
                    dry_run=dry_run,
                    now=time.time(),
                    progress=committed,
                    processes=processes,
                    leave=leave,
                )

        report = self.session.write(run, create=not dry_run)
        if not dry_run:
            report.problems += self.session.upkeep.indexed(_of_parts(progress))
        return report

    def index_documents(
        self,
        documents: Iterable[Source],
        *,
        progress: Callable[[IndexProgress], None] | None = None,
        processes: int = 0,
    ) -> IndexReport:
        """Indexes documents that do not come from files, such as those of a dataset. From a thousand documents on, up
        to `processes` further processes analyse them."""
        report = self.session.write(
            lambda opened: opened.indexer.index_documents(
                documents, now=time.time(), progress=progress, processes=processes
            ),
            create=True,
            repeatable=isinstance(documents, Sequence),  # an iterator can be consumed only once
        )
        report.problems += self.session.upkeep.indexed()
        return report

    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key. Raises E080."""
        return self.session.get(name)

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
        return self.session.read(
            lambda opened: reader.list_memories(opened.database.reader(), below, sort, limit, offset)
        )

    def status(self) -> HealthReport:
        """Checks everything that a search needs.

        Raises SpeckitError if the store was replaced by a file that cannot be opened.
        """
        # imported here: searches do not need it
        from speckit_memory.engine.diagnostics.health import HealthContext, health

        self.session.read(lambda opened: opened.database.latest())
        files = self.pipelines.reload()
        now = self.session.configuration.now
        # without variants and recording: this query is a probe, not a user's question
        with Memory(self.session.another(ConfigurationState(now.settings, now.searching))) as unwatched:
            ask = partial(unwatched.search, limit=3, deadline_ms=None)
            return health(
                HealthContext(
                    self.session.opened, now, tuple(self.session.store.replacements), ask, self.shadows.list(), files
                )
            )


def _of_parts(progress: Callable[[IndexProgress], None] | None) -> Callable[[int, int], None]:
    """A callback that reports progress on the search index as the second phase of an index run."""

    def told(done: int, total: int) -> None:
        from speckit_memory.memory.indexing import IndexProgress

        if progress:
            progress(IndexProgress(done, total, "", "search index"))

    return told
