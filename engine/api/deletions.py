"""Deletes memories together with their files, and restores them (features T9 and T11)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from os.path import lexists

from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.api.checkpoints import CheckpointService, timestamped_name
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.errors.echo import list_names
from speckit_memory.memory.editing import aside
from speckit_memory.memory.editing.one_at_a_time import one_at_a_time
from speckit_memory.memory.lifecycle import interference
from speckit_memory.memory.scanning.scanner import below
from speckit_memory.memory.scanning.workspace_sources import WorkspaceSources
from speckit_memory.memory.store.checkpoints import deletions, restoring
from speckit_memory.memory.store.checkpoints.deletions import Deletion
from speckit_memory.memory.store.missing import EmptyFolderError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord, Tier
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links
from speckit_memory.pipeline.process.cancellation import require_wanted

PROTECTED = (Tier.CONSTITUTIONAL, Tier.CRITICAL)
"""Tiers that bulk deletion never includes."""
DAY = 86_400
LEFT_SECONDS = 3600.0
"""A deletion record without missing rows is stale after this time: its process was killed early."""
NAMED = 3


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """The result of a deletion or its dry run.

    `name` undoes it and `checkpoint` holds the state before it, "" if there is none; `files` are the keys of files that
    were moved aside.
    """

    memories: tuple[MemoryRecord, ...]
    name: str = ""
    files: tuple[str, ...] = ()
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class UndeletionResult:
    """The result of undoing a deletion: keys of restored memories and files, and passages without vectors."""

    name: str
    memories: tuple[str, ...]
    files: tuple[str, ...]
    pending: int


@dataclass(eq=False)
class DeletionService:
    """The operations that delete memories. Files are moved aside, or the next index run would restore them."""

    session: StoreSession

    def delete(self, name: int | str, *, confirm: bool = False, dry_run: bool = False) -> DeletionResult:
        """Deletes a memory, by id or key, and moves its file aside; `undelete` restores both (feature T9).

        If it raises, nothing is deleted: E080 for an unknown memory, E105 for a constitutional or critical one without
        `confirm`, E062 if it cannot be backed up, E101 if its file cannot be moved, E022 if another change of documents
        does not end.
        """
        with self._one_at_a_time(dry_run):
            memory = self.session.get(name)
            if memory.tier in PROTECTED and not (confirm or dry_run):
                raise SpeckitError("E105", f"{memory.key} is {memory.tier}: deleting it must be confirmed")
            return DeletionResult((memory,)) if dry_run else self._deleted([memory], memory.key)

    def delete_folder(self, folder: str, *, confirm: bool = False, dry_run: bool = False) -> DeletionResult:
        """Deletes all memories in and below a folder, after a checkpoint, and the folders that are then empty (feature
        T9).

        Raises E080 for a folder without memories, E030 for the whole workspace, E107 if it contains constitutional or
        critical memories, E105 without `confirm`, and E062 if the checkpoint cannot be made.
        """
        below = normalised_folder(folder)
        if not below:
            raise _whole_workspace()
        memories = self._all(below)
        if not memories:
            raise EmptyFolderError(below)
        if spared := [one.key for one in memories if one.tier in PROTECTED]:
            message = f"'{below}' holds protected memories, {len(spared)} in all: {list_names(spared, NAMED)}"
            raise SpeckitError("E107", message)
        deleted = self._with_checkpoint(memories, f"folder {below}", "pre-cleanup", below, confirm, dry_run)
        if deleted.files:
            aside.remove_emptied(self.session.root, deleted.files, below)
        return deleted

    def delete_tier(
        self,
        tier: str,
        *,
        folder: str = "",
        older_than_days: int | None = None,
        confirm: bool = False,
        skip_checkpoint: bool = False,
        dry_run: bool = False,
    ) -> DeletionResult:
        """Deletes the memories of a tier after a checkpoint (feature T11). Does nothing if there are none.

        Args:
            tier: The importance tier; constitutional and critical need a folder and a checkpoint.
            folder: Only memories in and below this folder.
            older_than_days: Only memories that have not changed for this many days, at least 1.
            confirm: Required, except for a dry run.
            skip_checkpoint: Make no checkpoint first.
            dry_run: Report the memories without deleting them.

        Raises:
            SpeckitError: E030 and E032 for values and for the whole workspace as folder; E107 for protected tiers; E105
                without `confirm`; E062 if the checkpoint cannot be made.
        """
        below = normalised_folder(folder)
        if folder and not below:
            raise _whole_workspace()
        if tier not in set(map(str, Tier)):
            raise SpeckitError("E030", f"'{tier}' is not an importance tier", hint=nearest(tier, Tier))
        if older_than_days is not None and older_than_days < 1:
            raise SpeckitError("E032", f"{older_than_days} days are less than 1")
        if tier in PROTECTED and not below:
            raise SpeckitError("E107", f"{tier} memories are deleted only in a folder that is named")
        if tier in PROTECTED and skip_checkpoint:
            raise SpeckitError("E107", f"{tier} memories are deleted only after a checkpoint")
        since = None if older_than_days is None else time.time() - older_than_days * DAY
        memories = [
            one
            for one in self._all(below)
            if one.tier == tier and (since is None or (one.updated_at is not None and one.updated_at < since))
        ]
        why = f"tier {tier}{f' in {below}' if below else ''}"
        named = "" if skip_checkpoint else f"pre-bulk-delete-{tier}"
        return self._with_checkpoint(memories, why, named, below, confirm, dry_run)

    def undelete(self, name: str) -> UndeletionResult:
        """Restores what a deletion removed: memories with ids, links and everything learned, and files.

        Rows and files that exist already, because a process was interrupted, are left unchanged. If it raises, nothing
        is restored: E106 for an unknown deletion, E108 if another memory or file has taken the name, E022 if another
        change of documents does not end.
        """
        with self._one_at_a_time():
            return self._undeleted(name)

    def _undeleted(self, name: str) -> UndeletionResult:
        root = self.session.root
        store = self.session.database.path
        gone = deletions.deletion(store, name)
        files = aside.lying_aside(gone.files)
        self._require_free(gone, files)

        def run(opened: OpenStore) -> int:
            back = deletions.bring_back(opened.database, gone, now=time.time())
            try:
                aside.move_back(root, files, gone.files)
            except SpeckitError:
                with opened.database.write() as txn:
                    writer.delete_memories(txn, list(back.ids))
                raise
            return back.pending

        pending = self.session.write(run, repeatable=False)
        self.session.upkeep.indexed()
        deletions.drop(store, gone)
        return UndeletionResult(name, tuple(gone.memories.values()), tuple(files), pending)

    def list(self, limit: int = 50) -> Sequence[Deletion]:
        """The deletions that can be undone, the latest first: those with a memory or a file that is missing now."""
        return self.session.read(lambda opened: _deletions(opened, away=True))[:limit]

    def _with_checkpoint(
        self, memories: Sequence[MemoryRecord], why: str, named: str, folder: str, confirm: bool, dry_run: bool
    ) -> DeletionResult:
        if dry_run or not memories:
            return DeletionResult(tuple(memories))
        if not confirm:
            message = f"deleting {_count(memories)} must be confirmed: {why}"
            raise SpeckitError("E105", message)
        checkpoint = ""
        if named:
            checkpoint = timestamped_name(named)
            CheckpointService(self.session).create(checkpoint, folder=folder)
            require_wanted()  # the last chance to cancel: later steps must not be left half done
        with self._one_at_a_time():
            there = self._there(memories)
            left = [one for one in memories if one.id in there]
            return self._deleted(left, why, checkpoint) if left else DeletionResult((), checkpoint=checkpoint)

    def _one_at_a_time(self, idle: bool = False) -> AbstractContextManager[None]:
        """A lock against other changes of documents; none for an operation that is `idle` and changes nothing."""
        return nullcontext() if idle else one_at_a_time(self.session.database.path)

    def _there(self, memories: Sequence[MemoryRecord]) -> frozenset[int]:
        """The ids of those memories that still exist."""
        wanted = [one.id for one in memories]
        return self.session.read(lambda opened: restoring.there(opened.database.reader(), wanted))

    def _deleted(self, memories: Sequence[MemoryRecord], why: str, checkpoint: str = "") -> DeletionResult:
        """Backs the rows up, moves the files aside, then deletes the rows.

        In this order a killed process loses nothing: the next index run, or undoing the deletion, continues from there.
        """
        keys = {one.id: one.key for one in memories}

        def run(opened: OpenStore) -> tuple[str, list[str]]:
            opened.usage.write()  # pending counts belong to the rows that are backed up
            stored = reader.known_files(opened.database.reader())
            own = [key for key in keys.values() if key in stored and stored[key].mtime_ns is not None]
            self._require_own(opened, own)
            for left in _deletions(opened, away=False):
                if left.at < time.time() - LEFT_SECONDS:  # else its process may still be running
                    deletions.drop(opened.database.path, left)
                    aside.move_back(self.session.root, (), left.files)  # removes the empty folder
            gone = deletions.keep(opened.database, keys, why, now=time.time())
            try:
                files = aside.move_aside(self.session.root, own, gone.files)
                try:
                    with opened.database.write() as txn:
                        writer.delete_memories(txn, list(keys))
                        resolve_links(txn, time.time())
                except SpeckitError:
                    aside.move_back(self.session.root, files, gone.files)
                    raise
            except SpeckitError:
                deletions.drop(opened.database.path, gone)
                raise
            interference.recount(opened.database)
            return gone.name, files

        name, files = self.session.write(run, repeatable=False)
        self.session.upkeep.forgotten()
        return DeletionResult(tuple(memories), name, tuple(files), checkpoint)

    def _require_own(self, opened: OpenStore, keys: Sequence[str]) -> None:
        """Raises E101 for a memory of another workspace that shares the store."""
        connection, sources = opened.database.reader(), WorkspaceSources(opened.database, self.session.root)
        elsewhere, known = sources.elsewhere(connection), sources.known(connection)
        for key in keys:
            if elsewhere(key) and not any(below(key, source) for source in known):
                message = f"{key} belongs to another workspace that shares this store, not to {self.session.root}"
                raise SpeckitError("E101", message, actions=("delete it in that workspace",))

    def _all(self, folder: str) -> Sequence[MemoryRecord]:
        memories, _ = self.session.read(
            lambda opened: reader.list_memories(opened.database.reader(), folder, limit=2**31)
        )
        return sorted(memories, key=lambda memory: memory.key)

    def _require_free(self, gone: Deletion, files: Sequence[str]) -> None:
        """Raises E108 if another memory or file has taken a name since."""
        back = self.session.read(lambda opened: deletions.there(opened.database.reader(), gone))
        problems: list[Problem] = []
        for each, key in gone.memories.items():
            if key in files and lexists(self.session.root / key):
                problems += SpeckitError("E108", f"{key}: another file has that name").problems
                continue
            if each in back:
                continue
            with suppress(SpeckitError):
                self.session.get(key)
                problems += SpeckitError("E108", f"{key}: another memory has that key").problems
        if problems:
            raise SpeckitError.of(problems)


def _deletions(opened: OpenStore, *, away: bool) -> Sequence[Deletion]:
    """With `away`, the deletions with missing memories or files; else the stale ones, with nothing missing.

    A stale deletion is left by a process that was killed before deleting, or before it had finished undoing.
    """
    from speckit_memory.memory.editing import aside
    from speckit_memory.memory.store.checkpoints import deletions

    connection = opened.database.reader()
    return [
        gone
        for gone in deletions.deletions(opened.database.path)
        if away == (deletions.there(connection, gone) != set(gone.memories) or bool(aside.lying_aside(gone.files)))
    ]


def _whole_workspace() -> SpeckitError:
    message = "the folder to be deleted is the whole workspace"
    return SpeckitError("E030", message, actions=("name a folder",))


def _count(memories: Sequence[MemoryRecord]) -> str:
    return "1 memory" if len(memories) == 1 else f"{len(memories)} memories"
