"""The operations that write to a store: indexing, saving, judgements, background work, models."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from speckit_memory.config.files.paths import named_path, named_paths
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.documents.committed_progress import CommittedProgress
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.engine.session.usage_events import note_validated, noting_written
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.lifecycle import archival, validations
from speckit_memory.memory.store.tables.memories.archivals import ArchivedMemory, archived_memories

if TYPE_CHECKING:
    from speckit_memory.engine.documents.saved_links import LinkedMemories
    from speckit_memory.engine.graph.report import LinkedNames
    from speckit_memory.engine.runtime.model_use import StoreModels
    from speckit_memory.engine.upkeep.maintenance import MaintenanceReport
    from speckit_memory.memory.indexing import IndexProgress, IndexReport, SaveResult, Source
    from speckit_memory.memory.indexing.spaces import EmbeddingRun, ModelChange
    from speckit_memory.memory.store.records import Link


class IndexOperations(ABC):
    """The operations that write to the open store."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
        """The open store, reopened after a replacement."""

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

        report = self._followed.run(run, writes=not dry_run)
        if not dry_run:
            report.problems += self._followed.upkeep.indexed(_of_parts(progress))
        return report

    def forget(self, paths: str | Path | Iterable[str | Path], *, dry_run: bool = False) -> IndexReport:
        """Forgets the sources at and below these paths, and every memory that no other source holds. Raises E014."""
        named = named_paths(paths)
        report = self._followed.run(
            lambda opened: opened.indexer_without_model.forget(named, dry_run=dry_run, now=time.time())
        )
        if report.deleted and not dry_run:
            self._followed.upkeep.forgotten()
        return report

    def sources(self) -> dict[str, bool]:
        """The indexed sources by key ("" is the root), and whether each would be excluded if it were not named."""
        return self._followed.run(lambda opened: opened.indexer_without_model.sources())

    def index_documents(
        self,
        documents: Iterable[Source],
        *,
        progress: Callable[[IndexProgress], None] | None = None,
        processes: int = 0,
    ) -> IndexReport:
        """Indexes documents that do not come from files, such as those of a dataset. From a thousand documents on, up
        to `processes` further processes analyse them."""
        report = self._followed.run(
            lambda opened: opened.indexer.index_documents(
                documents, now=time.time(), progress=progress, processes=processes
            ),
            writes=True,
            repeatable=isinstance(documents, Sequence),  # an iterator can be consumed only once
        )
        report.problems += self._followed.upkeep.indexed()
        return report

    def save_file(
        self,
        path: str | Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        skip_preflight: bool = False,
        defer_embedding: bool = False,
        session: str = "",
        supersedes: Iterable[int | str] = (),
        relates_to: Iterable[int | str] = (),
    ) -> SaveResult:
        """Saves one file after the pre-flight checks (feature I9).

        Args:
            path: The file.
            force: Save despite failed checks; the report still lists them.
            dry_run: Run the checks only.
            skip_preflight: Skip the checks of anchors, duplicates and length; other faults of the document still refuse
                it.
            defer_embedding: Store the memory without its vector. Words find it at once; a server's background work,
                `maintain` or an index run embeds it later.
            session: The session that saves the memory; it attends to it from then on.
            supersedes: Memories, by id or key, that this one replaces; linked as by `link_one`.
            relates_to: Memories, by id or key, that this one is related to; linked as by `link_one`.
        """
        file = named_path(path)
        links: tuple[Link, ...] = ()
        if supersedes or relates_to:
            from speckit_memory.engine.documents import saved_links  # most saves make none

            links = saved_links.resolve_links(
                cast("LinkedMemories", self), self.settings.root, file, supersedes, relates_to
            )

        def save(opened: OpenStore) -> SaveResult:
            indexer = opened.indexer_without_model if defer_embedding else opened.saver
            with noting_written(opened):
                saved = indexer.save_file(
                    file, force=force, dry_run=dry_run, skip_preflight=skip_preflight, now=time.time()
                )
            if session and saved.id is not None and not dry_run:
                with harmless("a save could not be recorded in its session"):
                    session_events.record_saved(opened.database, identifier(session), saved.id, time.time())
            return saved

        saved = self._followed.run(save, writes=not dry_run)
        self._followed.upkeep.saved()
        return saved_links.add_links(cast("LinkedMemories", self), saved, links) if links and not dry_run else saved

    def remove_edges(self, made_by: str, *, dry_run: bool = False) -> int:
        """Deletes every causal edge that an automatic process made, by its name. Returns the number of edges.

        Raises E030 for a process without edges, and for edges from people and documents.
        """
        from speckit_memory.engine.graph.report import remove_edges

        return self._followed.run(
            lambda opened: remove_edges(opened.database, made_by, dry_run=dry_run), repeatable=False
        )

    def link_names(self) -> LinkedNames:
        """Links memories that mention the same names, where the graph is sparse (features M10 and S5).

        The edges are marked as made by `entities`; `remove_edges` deletes them. Raises SpeckitError if the store cannot
        be written.
        """
        from speckit_memory.engine.graph.report import link_names

        return self._followed.run(lambda opened: link_names(opened.database))

    def rank_memories(self) -> int:
        """Ranks memories and detects communities now, where the graph is dense, instead of in background work (feature
        M10).

        Returns the number of memories with changed values. Raises SpeckitError if the store cannot be written.
        """
        from speckit_memory.engine.graph.report import rank_memories

        return self._followed.run(lambda opened: rank_memories(opened.database))

    def encode_memories(self) -> int:
        """Makes missing vectors of the second-stage encoder now instead of in background work (feature R1).

        Returns the number of vectors made; 0 if no encoder is configured. Raises SpeckitError if the encoder fails or
        the store cannot be written.
        """
        from speckit_memory.memory.indexing.encoder_vectors import make_all

        return self._followed.run(lambda opened: make_all(opened.encoder, opened.database) if opened.encoder else 0)

    def validate(
        self, name: int | str, *, useful: bool, promote: bool = False, session: str = ""
    ) -> validations.ValidationResult:
        """Records that a memory was useful or not, which raises or lowers its confidence (feature F17).

        A useful memory that was archived is restored as by `unarchive`. `judgements` lists the judgement,
        `undo_judgements` reverts it.

        Args:
            name: The memory, by id or key.
            useful: Whether it was useful.
            promote: Make the memory critical afterwards.
            session: The session that judges.

        Raises:
            SpeckitError: E080 if there is no such memory; E082 if it may not be promoted, and then nothing is recorded.
        """

        def judge(opened: OpenStore) -> validations.ValidationResult:
            judged = validations.validate(
                opened.database, name, useful, promote=promote, now=time.time(), session=identifier(session)
            )
            if useful:
                note_validated(opened, judged.id)
            return judged

        return self._followed.run(judge, repeatable=False)  # a repetition would count the judgement twice

    def promote(self, name: int | str, *, session: str = "") -> validations.ValidationResult:
        """Makes a memory critical if readers found it useful often enough; `session` is recorded. Raises E080, E082."""
        return self._followed.run(
            lambda opened: validations.promote(opened.database, name, now=time.time(), session=identifier(session)),
            repeatable=False,
        )

    def unarchive(self, name: int | str) -> bool:
        """Restores a memory, by id or key, that was archived for its age or expiry date, so that searches find it
        (feature M5).

        An expired memory lives seven more days, whether or not background work has archived it yet. Returns False if it
        was neither archived nor expired. Raises E080.
        """
        _, restored = self._followed.run(
            lambda opened: archival.unarchive(opened.database, name, time.time()), repeatable=False
        )
        return restored

    def archived(self) -> tuple[ArchivedMemory, ...]:
        """The archived memories, by key."""
        return self._followed.run(lambda opened: tuple(archived_memories(opened.database.reader())))

    def maintain(self, *, dry_run: bool = False) -> MaintenanceReport:
        """Runs the background work that is due (features I9, M5, M10 and M13), unless another process is running it.

        The work: delete ended sessions, archive memories that expired or are old, unused and doubted, embed memories
        without vectors, link memories that share names if `entities: link` is configured, and rank the causal graph.
        Raises SpeckitError if the store cannot be written.
        """
        from speckit_memory.engine.upkeep import maintenance  # searches do not need it
        from speckit_memory.engine.upkeep.maintenance_jobs import jobs_for

        work = maintenance.foreseen if dry_run else maintenance.run_due
        return self._followed.run(lambda opened: work(opened.database, every=jobs_for(opened)))

    def models(self) -> StoreModels:
        """The embedding models of the store: in use, earlier, and being built (feature I6)."""
        from speckit_memory.engine.runtime import model_use  # searches do not need it

        return self._followed.run(model_use.models)

    def build_model(self, name: str, *, progress: Callable[[IndexProgress], None] | None = None) -> EmbeddingRun:
        """Builds the vectors of a model while those in use go on serving (feature I6).

        A killed process loses one batch; the next one continues. Raises E001 if the model does not work, and E022 while
        another process builds vectors.
        """
        from speckit_memory.engine.runtime import model_use

        return self._followed.run(lambda opened: model_use.build(opened, name, progress), writes=True)

    def use_model(self, name: str, *, progress: Callable[[IndexProgress], None] | None = None) -> ModelChange:
        """Builds missing vectors and switches to this model, at once and for every process. Raises as `build_model`."""
        from speckit_memory.engine.runtime import model_use

        changed = self._followed.run(lambda opened: model_use.use(opened, name, progress), writes=True)
        self._followed.upkeep.saved()
        return changed

    def roll_back_model(self, *, progress: Callable[[IndexProgress], None] | None = None) -> ModelChange:
        """Switches back to the vectors before the last change. Raises E030 if there was no change."""
        from speckit_memory.engine.runtime import model_use

        changed = self._followed.run(lambda opened: model_use.roll_back(opened, progress))
        self._followed.upkeep.saved()
        return changed


def _of_parts(progress: Callable[[IndexProgress], None] | None) -> Callable[[int, int], None]:
    """A callback that reports progress on the search index as the second phase of an index run."""

    def told(done: int, total: int) -> None:
        from speckit_memory.memory.indexing import IndexProgress

        if progress:
            progress(IndexProgress(done, total, "", "search index"))

    return told
