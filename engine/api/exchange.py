"""Memories written out as files, and brought in from files (feature M14)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from speckit_memory.config.files.paths import named_path, resolved
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.api.checkpoints import Checkpointing, timed
from speckit_memory.engine.runtime.open_store import OpenStore

if TYPE_CHECKING:
    from speckit_memory.memory.exchange.deciding import Decided
    from speckit_memory.memory.exchange.exporting import Exported
    from speckit_memory.memory.exchange.importing import Done
    from speckit_memory.memory.indexing import IndexReport, Progress, Source
    from speckit_memory.memory.store.file.connection import Database


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """What became of one memory: `kept` as it is here, where that is another or a later state, or `refused`; `why`
    says the reason, or what was taken of it."""

    key: str
    outcome: Literal["created", "updated", "unchanged", "kept", "refused"]
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or would do by a dry run. `written` are keys of files that it made or wrote over; those it
    wrote over were copied to `aside` first, and `checkpoint` keeps the store before it, None and "" where nothing was
    replaced. `left_out` counts rows that name memories which are not here; `pending` passages wait for vectors."""

    memories: tuple[ImportedMemory, ...]
    written: tuple[str, ...] = ()
    checkpoint: str = ""
    aside: Path | None = None
    left_out: int = 0
    pending: int = 0
    dry_run: bool = False

    def count(self, outcome: str) -> int:
        """How many memories came out so."""
        return sum(one.outcome == outcome for one in self.memories)


class Exchanging(Checkpointing):
    """The operations that take memories out of the open store as files, and into it."""

    def export(self, path: str | Path, *, folder: str = "") -> Exported:
        """Writes all memories, or those of a folder and below it, into the folder `path`: the text of each as a file
        that people read and edit, beside it what was learned of it. An earlier export there is brought up to date.

        Secrets are left out of the texts. Raises E064, and E080 for a folder without memories.
        """
        from speckit_memory.memory.exchange.exporting import export

        target, below = resolved(named_path(path)), normalised_folder(folder)
        rules = load_workspace_config(self.settings.root).saving

        def run(opened: OpenStore) -> Exported:
            if not opened.database.only_read:
                opened.usage.write()
            return export(opened.database, self.settings.root, rules, target, below)

        return self._followed.run(run)

    def import_from(
        self,
        source: str | Path,
        *,
        replace: bool = False,
        into: str | None = None,
        dry_run: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> Imported:
        """Brings in the memories of an export, or the documents of another folder or file, which are copied `into` a
        folder of the workspace. Files that are missing in the workspace are made.

        Texts that were edited in the export alone are taken as updates, and what was learned of a memory later goes
        before what was learned earlier; to `replace`, both are taken whatever there is. Before anything is replaced, a
        checkpoint is made. Raises E010, E025, E062, E065 and E066; nothing is changed then.
        """
        from speckit_memory.memory.exchange import deciding, offers
        from speckit_memory.memory.store.checkpoints.folder import Folder

        found = offers.opened(resolved(named_path(source)), None if into is None else normalised_folder(into))
        rules = load_workspace_config(self.settings.root).saving

        def decide(opened: OpenStore) -> list[deciding.Decided]:
            if not opened.database.only_read:
                opened.usage.write()
            with opened.database.snapshot_read() as connection:
                return deciding.decided(connection, self.settings.root, rules, found.offers, replace=replace)

        plan = self._followed.run(decide)
        if dry_run:
            return Imported(_told(plan), dry_run=True)
        name, before = timed("before-import"), ""
        if any(one.outcome == "updated" or one.over for one in plan):
            before = name
            self._made(name, "", {"before": f"import of {found.top}"}, ())
        aside = Folder(self._followed.current.database.path).aside(name)

        def run(opened: OpenStore) -> Done:
            from speckit_memory.memory.exchange import importing
            from speckit_memory.memory.indexing import Indexer
            from speckit_memory.memory.lifecycle import interference

            def index(staged: Database, sources: Iterator[Source]) -> IndexReport:
                indexer = Indexer(staged, opened.embedder, opened.analyser, self.settings.root)
                return indexer.index_documents(sources, now=now, progress=progress)

            now = time.time()
            done = importing.run(
                importing.Workspace(opened.database, self.settings.root, aside), found, plan, index, now=now
            )
            interference.recount(opened.database)
            return done

        done = self._followed.run(run, writes=True, repeatable=False)
        self._followed.upkeep.indexed()
        return Imported(
            _told(done.decided), done.written, before, aside if aside.is_dir() else None, done.left_out, done.pending
        )


def _told(plan: Iterable[Decided]) -> tuple[ImportedMemory, ...]:
    return tuple(ImportedMemory(one.offer.key, one.outcome, one.why) for one in plan)
