"""What a memory takes in: documents, their links, and what readers thought of them."""

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
from speckit_memory.engine.session.reopening import Following
from speckit_memory.engine.session.usage_events import note_validated, noting_written
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.lifecycle import archival, validations
from speckit_memory.memory.store.tables.memories.archivals import Archived, archived

if TYPE_CHECKING:
    from speckit_memory.engine.documents.saved_links import LinkedMemories
    from speckit_memory.engine.graph.report import LinkedNames
    from speckit_memory.engine.runtime.model_use import StoreModels
    from speckit_memory.engine.upkeep.maintenance import Maintained
    from speckit_memory.memory.indexing import IndexReport, Progress, Saved, Source
    from speckit_memory.memory.indexing.spaces import Built, Changed
    from speckit_memory.memory.store.records import Link


class Remembering(ABC):
    """The operations that write to the open store."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    @abstractmethod
    def _followed(self) -> Following:
        """The open store."""

    def index(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        force: bool = False,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
        processes: int = 0,
        include_constitutional: bool = True,
        include_spec_docs: bool = True,
    ) -> IndexReport:
        """Brings the store up to date with files and folders, one or many (I1–I8), and remembers them as sources.

        What is named is taken, hidden or ignored as it may be; below a folder, what `docs/workspace.md` says.
        A file that cannot be read or parsed is reported with its reason; the rest is indexed. Of a thousand files or
        more, up to so many further `processes` read and analyse them. Documents in folders named `constitutional`, or
        spec documents below `specs`, are left as they are where they are not to be included: neither read nor deleted;
        memories follow their files there and from there all the same. Raises E014, and E030 for what is no path.
        """
        from speckit_memory.memory.scanning.left_alone import kinds_left_alone

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
        """Forgets the sources at and below these paths, with every memory that no other source holds. Raises E014."""
        named = named_paths(paths)
        report = self._followed.run(
            lambda opened: opened.indexer_without_model.forget(named, dry_run=dry_run, now=time.time())
        )
        if report.deleted and not dry_run:
            self._followed.upkeep.forgotten()
        return report

    def sources(self) -> dict[str, bool]:
        """What was indexed by name, by key ("" is the root), and whether it would be left out but for its name."""
        return self._followed.run(lambda opened: opened.indexer_without_model.sources())

    def index_documents(
        self,
        documents: Iterable[Source],
        *,
        progress: Callable[[Progress], None] | None = None,
        processes: int = 0,
    ) -> IndexReport:
        """Indexes documents that do not come from files, such as those of a dataset. Of a thousand or more, up to so
        many further `processes` analyse them."""
        report = self._followed.run(
            lambda opened: opened.indexer.index_documents(
                documents, now=time.time(), progress=progress, processes=processes
            ),
            writes=True,
            repeatable=isinstance(documents, Sequence),  # others can be gone through once
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
    ) -> Saved:
        """Saves one file after the pre-flight checks (feature I9).

        With `force` it is saved whatever they find, which is told; with `skip_preflight` nobody looks at anchors, for
        memories with the same content or at the length, and what else is wrong with the document is still refused.
        With `defer_embedding` the memory is stored at once and found by words alone, until the background work of a
        server, `maintain` or an index run embeds it. The `session` that saves it attends to it from then on. Links to
        what it `supersedes` and `relates_to`, memories by id or key, are made as by `link_one`.
        """
        file = named_path(path)
        links: tuple[Link, ...] = ()
        if supersedes or relates_to:
            from speckit_memory.engine.documents import saved_links  # most saves make none

            links = saved_links.wanted(cast("LinkedMemories", self), self.settings.root, file, supersedes, relates_to)

        def save(opened: OpenStore) -> Saved:
            indexer = opened.indexer_without_model if defer_embedding else opened.saver
            with noting_written(opened):
                saved = indexer.save_file(
                    file, force=force, dry_run=dry_run, skip_preflight=skip_preflight, now=time.time()
                )
            if session and saved.id is not None and not dry_run:
                with harmless("a session could not be told what it saved"):
                    session_events.saved(opened.database, identifier(session), saved.id, time.time())
            return saved

        saved = self._followed.run(save, writes=not dry_run)
        self._followed.upkeep.saved()
        return saved_links.made(cast("LinkedMemories", self), saved, links) if links and not dry_run else saved

    def remove_edges(self, made_by: str, *, dry_run: bool = False) -> int:
        """Deletes every causal edge that an automatic process made, by its name; returns how many there are.

        Raises E030 for a process that made none, and for what people and documents say.
        """
        from speckit_memory.engine.graph.report import remove_edges

        return self._followed.run(
            lambda opened: remove_edges(opened.database, made_by, dry_run=dry_run), repeatable=False
        )

    def link_names(self) -> LinkedNames:
        """Links memories that name the same, wherever the graph is not dense without it (features M10 and S5).

        The edges are made by `entities`; `remove_edges` takes them out. Raises SpeckitError when the store cannot be
        written.
        """
        from speckit_memory.engine.graph.report import link_names

        return self._followed.run(lambda opened: link_names(opened.database))

    def rank_memories(self) -> int:
        """Ranks memories and finds their communities now, where the graph is dense, and not when the background work
        comes to it (feature M10); returns for how many something changed.

        Raises SpeckitError when the store cannot be written.
        """
        from speckit_memory.engine.graph.report import rank_memories

        return self._followed.run(lambda opened: rank_memories(opened.database))

    def encode_memories(self) -> int:
        """Makes the vectors of the second look now, and not when the background work comes to it (feature R1); returns
        how many memories and passages had none. Nothing is done where no encoder is named.

        Raises SpeckitError when the encoder fails or the store cannot be written.
        """
        from speckit_memory.memory.indexing.encoder_vectors import make_all

        return self._followed.run(lambda opened: make_all(opened.encoder, opened.database) if opened.encoder else 0)

    def validate(
        self, name: int | str, *, useful: bool, promote: bool = False, session: str = ""
    ) -> validations.Validated:
        """Notes that a memory, by id or key, was useful, or was not: its confidence rises or falls (feature F17).

        With `promote` it is made critical after that. What was put away and was useful is taken back, as by
        `unarchive`. `judgements` tells of it, with the `session` that says so, and
        `undo_judgements` takes it back. Raises E080, and E082 when it may not be; nothing is noted then.
        """

        def judge(opened: OpenStore) -> validations.Validated:
            judged = validations.validate(
                opened.database, name, useful, promote=promote, now=time.time(), session=identifier(session)
            )
            if useful:
                note_validated(opened, judged.id)
            return judged

        return self._followed.run(judge, repeatable=False)  # it would count twice

    def promote(self, name: int | str, *, session: str = "") -> validations.Validated:
        """Makes a memory critical that readers found useful often enough, as a `session` asks. Raises E080, E082."""
        return self._followed.run(
            lambda opened: validations.promote(opened.database, name, now=time.time(), session=identifier(session)),
            repeatable=False,
        )

    def unarchive(self, name: int | str) -> bool:
        """Takes a memory back, by id or key, that was put away for its age or its date: searches find it again as
        before (feature M5).

        One that had expired lives seven more days, whether or not background work has put it away yet. False when
        it was not put away and has not expired. Raises E080.
        """
        _, restored = self._followed.run(
            lambda opened: archival.unarchive(opened.database, name, time.time()), repeatable=False
        )
        return restored

    def archived(self) -> tuple[Archived, ...]:
        """The memories that are put away, by key."""
        return self._followed.run(lambda opened: tuple(archived(opened.database.reader())))

    def maintain(self, *, dry_run: bool = False) -> Maintained:
        """Runs the background work that is due now: forgets sessions that are over, puts away what has expired or
        is old, unused and doubted, embeds what waits for its vectors, links what names the same where `entities: link`
        is configured, and ranks what the causal graph connects (features I9, M5, M10 and M13). Nothing, when another
        process does so.

        Raises SpeckitError when the store cannot be written.
        """
        from speckit_memory.engine.upkeep import maintenance  # a search has no use for it
        from speckit_memory.engine.upkeep.maintenance_jobs import jobs_for

        work = maintenance.foreseen if dry_run else maintenance.run_due
        return self._followed.run(lambda opened: work(opened.database, every=jobs_for(opened)))

    def models(self) -> StoreModels:
        """The models of the store: whose vectors are in use, were before, and are being made (feature I6)."""
        from speckit_memory.engine.runtime import model_use  # a search has no use for it

        return self._followed.run(model_use.models)

    def build_model(self, name: str, *, progress: Callable[[Progress], None] | None = None) -> Built:
        """Makes the vectors of a model by its name, beside those in use, which go on serving (feature I6).

        Whoever is killed loses one batch, and who comes next goes on. Raises E001 when the model does not work, E022
        while another process makes vectors.
        """
        from speckit_memory.engine.runtime import model_use

        return self._followed.run(lambda opened: model_use.build(opened, name, progress), writes=True)

    def use_model(self, name: str, *, progress: Callable[[Progress], None] | None = None) -> Changed:
        """Makes what is missing and puts the vectors of a model in use, at once and for every process. Raises as
        `build_model`."""
        from speckit_memory.engine.runtime import model_use

        changed = self._followed.run(lambda opened: model_use.use(opened, name, progress), writes=True)
        self._followed.upkeep.saved()
        return changed

    def roll_back_model(self, *, progress: Callable[[Progress], None] | None = None) -> Changed:
        """Puts the vectors in use that were before the last change. Raises E030 when there was none."""
        from speckit_memory.engine.runtime import model_use

        changed = self._followed.run(lambda opened: model_use.roll_back(opened, progress))
        self._followed.upkeep.saved()
        return changed


def _of_parts(progress: Callable[[Progress], None] | None) -> Callable[[int, int], None]:
    """A callback for parts of what searches read that tells them as the second phase of a run."""

    def told(done: int, total: int) -> None:
        from speckit_memory.memory.indexing import Progress

        if progress:
            progress(Progress(done, total, "", "search index"))

    return told
