"""Creates, restores and deletes checkpoints of a store (feature M14)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from speckit_memory.config.workspace.workspace_file import load_workspace_config
from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.recording.screening import storable
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.aside import kept_by
from speckit_memory.memory.indexing.restored_files import Disagreements, note_disagreements
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.lifecycle import interference
from speckit_memory.memory.scanning.workspace_sources import WorkspaceSources
from speckit_memory.memory.store.checkpoints import creation, restoring
from speckit_memory.memory.store.checkpoints.creation import CreatedCheckpoint
from speckit_memory.memory.store.checkpoints.folder import Checkpoint, Folder
from speckit_memory.memory.store.checkpoints.restoring import RestoreReport
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.pipeline.process.cancellation import require_wanted


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore; `before` is the checkpoint made first, "" for none.

    `parted` lists files that differ from the restored memories, which stand until the files change; `aside` are the
    names of deletions that hold files of restored memories.
    """

    restored: RestoreReport
    before: str
    parted: Disagreements
    aside: tuple[str, ...] = ()


@dataclass(eq=False)
class CheckpointService:
    """The operations on checkpoints of the open store."""

    session: StoreSession

    def create(
        self,
        name: str,
        *,
        folder: str = "",
        metadata: Mapping[str, Any] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> CreatedCheckpoint:
        """Saves all memories, or those of a folder, as a checkpoint; drops the oldest ones beyond the workspace's
        limits.

        Args:
            name: A name that is not in use.
            folder: Save only the memories of this folder and below.
            metadata: JSON of at most 10,000 characters, shown with the checkpoint.
            progress: Called with the numbers of copied and of all pages.

        Raises:
            SpeckitError: E030; E062 (not written, and nothing is left behind), E063 (the name is in use), E080 (an
                empty folder).
        """
        _require_short(metadata)
        if kind := secrets.secret_kind_of_name(name):
            message = f"the name of the checkpoint holds a secret ({kind}); nothing was made"
            raise SpeckitError("E030", message, actions=("choose another name",))
        kept = storable(dict(metadata or {}), self.session.root)
        return self.make(name, normalised_folder(folder), kept, (), progress)

    def list(self, folder: str = "", limit: int = 50) -> list[Checkpoint]:
        """The checkpoints, the latest first; with `folder`, those of it, of folders below, and of the whole store."""
        below = normalised_folder(folder)
        found = [
            one
            for one in Folder(self.session.database.path).all()
            if not below or not one.folder or one.folder == below or one.folder.startswith(f"{below}/")
        ]
        return found[:limit]

    def restore(
        self, name: str, *, replace: bool = False, foreign: bool = False, keep_before: bool = True
    ) -> RestoreResult:
        """Restores the memories of a checkpoint.

        Files are not changed. Where a file differs or is missing, the restored memory stands until the file changes.
        Other processes continue on the restored store.

        Args:
            name: The checkpoint.
            replace: Delete memories that the checkpoint does not contain, in its folder or in the whole store.
            foreign: Allow a checkpoint of another store.
            keep_before: With `replace`, make a checkpoint of the store first.

        Raises:
            SpeckitError: E060, E061 and E062; the store is unchanged then.
        """

        def restore(opened: OpenStore) -> tuple[RestoreReport, Disagreements]:
            opened.usage.write()  # pending counts belong to the state before the restore
            parted = Disagreements()

            def compare(txn: Transaction, back: Collection[int], gone: Collection[str]) -> None:
                nonlocal parted
                elsewhere = WorkspaceSources(opened.database, root).elsewhere(txn.connection)
                parted = note_disagreements(txn, root, elsewhere, back, gone)

            result = restoring.restore(
                opened.database, chosen, replace=replace, now=time.time(), foreign=foreign, compare=compare
            )
            interference.recount(opened.database)
            return result, parted

        root = self.session.root
        chosen = Folder(self.session.database.path).get(name)
        before = ""
        if replace and keep_before and self.session.read(lambda opened: opened.database.latest()):
            before = timestamped_name("before-restore")
            self.make(before, "", {"before": f"restore of {name}"}, (name,))
            require_wanted()  # from here on it is one transaction
        restored, parted = self.session.write(restore, create=True)
        self.session.upkeep.indexed()
        missing = parted.without_file
        aside = kept_by(self.session.database.path, missing) if missing else ()
        return RestoreResult(restored, before, parted, aside)

    def delete(self, name: str) -> Checkpoint:
        """Deletes a checkpoint permanently. Raises E060 and E062."""
        folder = Folder(self.session.database.path)
        chosen = folder.get(name)
        with folder.changing():
            folder.remove(chosen)
        return chosen

    def make(
        self,
        name: str,
        folder: str,
        metadata: Mapping[str, Any] | None,
        spared: tuple[str, ...],
        progress: Callable[[int, int], None] | None = None,
    ) -> CreatedCheckpoint:
        """Saves a checkpoint whose name and metadata are known to be storable.

        Args:
            name: A name that is not in use.
            folder: The folder, normalised; "" for the whole store.
            metadata: Shown with the checkpoint.
            spared: Checkpoints that are kept whatever their age.
            progress: Called with the numbers of copied and of all pages.
        """
        limits = load_workspace_config(self.session.root).checkpoints

        def copied(done: int, total: int) -> None:
            require_wanted()
            if progress:
                progress(done, total)

        def make(opened: OpenStore) -> CreatedCheckpoint:
            opened.usage.write()
            return creation.make(
                opened.database,
                name,
                now=time.time(),
                limits=creation.RetentionLimits(limits.keep, limits.days),
                folder=folder,
                metadata=metadata,
                spared=spared,
                progress=copied,
            )

        return self.session.write(make, repeatable=False)


def timestamped_name(what: str) -> str:
    """A unique, timestamped name for a checkpoint that is made before another operation."""
    return f"{what}-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06d}"


def _require_short(metadata: Mapping[str, Any] | None) -> None:
    from speckit_memory.memory.store.checkpoints.folder import LONGEST_METADATA

    try:
        text = json.dumps(metadata or {}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpeckitError("E030", f"the metadata of a checkpoint is not JSON: {error}") from error
    if len(text) > LONGEST_METADATA:
        message = f"the metadata of a checkpoint has {len(text):,} characters as JSON, accepted: {LONGEST_METADATA:,}"
        raise SpeckitError("E032", message)
