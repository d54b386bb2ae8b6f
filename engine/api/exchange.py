"""Exports memories to files, and imports them (feature M14)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path

from speckit_memory.config.files.paths import named_path, resolve_path
from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.api.checkpoints import CheckpointService, timestamped_name
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.memory.exchange import decisions, importing, offers
from speckit_memory.memory.exchange.exporting import ExportReport, export
from speckit_memory.memory.exchange.importing import ImportResult
from speckit_memory.memory.indexing import Indexer, IndexProgress, IndexReport, Source
from speckit_memory.memory.lifecycle import interference
from speckit_memory.memory.store.checkpoints.folder import Folder
from speckit_memory.memory.store.file.connection import Database


@dataclass(eq=False)
class ExchangeService:
    """The operations that export memories of the open store to files, and import files."""

    session: StoreSession

    def export(self, path: str | Path, *, folder: str = "") -> ExportReport:
        """Writes all memories, or those in and below a folder, to the folder `path`: editable texts, and learned data
        separately.

        An earlier export there is updated. Secrets are removed from the texts. Raises E064, and E080 for a folder
        without memories.
        """
        target, below = resolve_path(named_path(path)), normalised_folder(folder)
        rules = load_workspace_config(self.session.root).saving

        def run(opened: OpenStore) -> ExportReport:
            opened.usage.write()
            return export(opened.database, self.session.root, rules, target, below)

        return self.session.read(run)

    def import_from(
        self,
        source: str | Path,
        *,
        replace: bool = False,
        into: str | None = None,
        dry_run: bool = False,
        progress: Callable[[IndexProgress], None] | None = None,
    ) -> ImportResult:
        """Imports an export, or the documents of another folder or file. Creates files that are missing in the
        workspace.

        For each memory, texts that were edited only in the export are taken as updates, and later learned data wins
        over earlier. A checkpoint is made before anything is replaced.

        Args:
            source: The export, folder or file.
            replace: Take texts and learned data from the export in any case.
            into: The folder of the workspace that documents are copied to.
            dry_run: Report the outcome without importing.
            progress: Called with each step of the work.

        Raises:
            SpeckitError: E010, E025, E062, E065 and E066; nothing is changed then.
        """
        found = offers.open_offers(resolve_path(named_path(source)), None if into is None else normalised_folder(into))
        found = replace_fields(found, offers=tuple(map(self._open_offer, found.offers)))
        rules = load_workspace_config(self.session.root).saving

        def decide(opened: OpenStore) -> list[decisions.ImportDecision]:
            opened.usage.write()
            with opened.database.snapshot_read() as connection:
                return decisions.decide_offers(connection, self.session.root, rules, found.offers, replace=replace)

        plan = self.session.read(decide)
        if dry_run:
            return ImportResult(importing.outcomes(plan), dry_run=True)
        name, before = timestamped_name("before-import"), ""
        if any(one.outcome == "updated" or one.over for one in plan):
            before = name
            CheckpointService(self.session).make(name, "", {"before": f"import of {found.top}"}, ())
        aside = Folder(self.session.database.path).aside(name)

        def run(opened: OpenStore) -> ImportResult:
            def index(staged: Database, sources: Iterator[Source]) -> IndexReport:
                indexer = Indexer(staged, opened.embedder, opened.analyser, self.session.root)
                return indexer.index_documents(sources, now=now, progress=progress)

            now = time.time()
            done = importing.run(
                importing.ImportTarget(opened.database, self.session.root, aside), found, plan, index, now=now
            )
            interference.recount(opened.database)
            return done

        done = self.session.write(run, create=True, repeatable=False)
        self.session.upkeep.indexed()
        return replace_fields(done, checkpoint=before, aside=aside if aside.is_dir() else None)

    def _open_offer(self, offer: offers.Offer) -> offers.Offer:
        """An offer, refused if its key is in the private folder of another principal."""
        if not self.session.settings.is_closed(offer.key):
            return offer
        return offers.Offer(offer.key, offer.place, problem="its key is in the private folder of another principal")
