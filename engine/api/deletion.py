"""Memories that are deleted with their files, and brought back (features T9 and T11)."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from os.path import lexists
from typing import TYPE_CHECKING

from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.api.checkpoints import Checkpointing, timed
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.errors import Problem, SpeckitError, nearest
from speckit_memory.errors.echo import listed
from speckit_memory.memory.store.missing import EmptyFolderError
from speckit_memory.memory.store.records import MemoryRecord, Tier
from speckit_memory.pipeline.process.cancellation import require_wanted

if TYPE_CHECKING:
    from speckit_memory.memory.store.checkpoints.deletions import Deletion

PROTECTED = (Tier.CONSTITUTIONAL, Tier.CRITICAL)
"""Tiers that nothing deletes beside others."""
DAY = 86_400
LEFT_SECONDS = 3600.0
"""After so long a deletion that took nothing is one whose process was killed."""
NAMED = 3


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted, or would be by a dry run. `name` undoes it and `checkpoint` keeps the state before it, both ""
    where there is none; `files` are the keys of files that were moved aside."""

    memories: tuple[MemoryRecord, ...]
    name: str = ""
    files: tuple[str, ...] = ()
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class Undeleted:
    """A deletion that was undone: keys of the memories and of the files that are back, and how many passages wait for
    vectors."""

    name: str
    memories: tuple[str, ...]
    files: tuple[str, ...]
    pending: int


class Deleting(Checkpointing):
    """The operations that delete memories. Their files are moved aside, or the next index run would bring them back."""

    @abstractmethod
    def get(self, name: int | str) -> MemoryRecord:
        """A memory by id or key."""

    @abstractmethod
    def list(
        self, folder: str = "", *, sort: str = "updated_at", limit: int = 20, offset: int = 0
    ) -> tuple[list[MemoryRecord], int]:
        """A page of the memories of a folder."""

    def delete(self, name: int | str, *, confirm: bool = False, dry_run: bool = False) -> Deleted:
        """Deletes a memory, by id or key, and moves its file aside; `undelete` brings both back (feature T9).

        Raises E080 for an unknown one, E105 for a constitutional or critical one without `confirm`, E062 when it cannot
        be kept, E101 when its file cannot be moved and E022 when another change of documents does not end; nothing is
        deleted then.
        """
        with self._one_at_a_time(dry_run):
            memory = self.get(name)
            if memory.tier in PROTECTED and not (confirm or dry_run):
                raise SpeckitError("E105", f"{memory.key} is {memory.tier}: it is deleted only when that is confirmed")
            return Deleted((memory,)) if dry_run else self._deleted([memory], memory.key)

    def delete_folder(self, folder: str, *, confirm: bool = False, dry_run: bool = False) -> Deleted:
        """Deletes all memories of a folder and below it, after a checkpoint of it, and the folders that are empty then
        (feature T9).

        Raises E080 for a folder without memories, E030 for that of the whole workspace, E107 when it holds
        constitutional or critical ones, E105 without `confirm`, and E062 when there can be no checkpoint.
        """
        below = normalised_folder(folder)
        if not below:
            raise _whole_workspace()
        memories = self._all(below)
        if not memories:
            raise EmptyFolderError(below)
        if spared := [one.key for one in memories if one.tier in PROTECTED]:
            message = f"'{below}' holds protected memories, {len(spared)} in all: {listed(spared, NAMED)}"
            raise SpeckitError("E107", message)
        deleted = self._with_checkpoint(memories, f"folder {below}", "pre-cleanup", below, confirm, dry_run)
        if deleted.files:
            from speckit_memory.memory.editing import aside

            aside.remove_emptied(self.settings.root, deleted.files, below)
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
    ) -> Deleted:
        """Deletes the memories of a tier, of a folder and below it if one is named, and those alone that have not
        changed for so many days if they are given; after a checkpoint (feature T11).

        Constitutional and critical ones need a folder and a checkpoint (E107). Raises E030 and E032 for values and for
        the folder of the whole workspace, E105
        without `confirm`, and E062 when there can be no checkpoint. Without any such memory nothing happens.
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

    def undelete(self, name: str) -> Undeleted:
        """Brings back what a deletion took: memories with their ids, links and all that was learned, and files.

        What is back already, as an earlier undoing or the deletion itself was cut off, stays as it is.

        Raises E106 for an unknown deletion, E108 where something has taken the place of a memory or file and E022 when
        another change of documents does not end; nothing is brought back then.
        """
        with self._one_at_a_time():
            return self._undeleted(name)

    def _undeleted(self, name: str) -> Undeleted:
        from speckit_memory.memory.editing import aside
        from speckit_memory.memory.store.checkpoints import deletions
        from speckit_memory.memory.store.writing import writer

        root = self.settings.root
        store = self._followed.current.database.path
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

        pending = self._followed.run(run, repeatable=False)
        self._followed.upkeep.indexed()
        deletions.drop(store, gone)
        return Undeleted(name, tuple(gone.memories.values()), tuple(files), pending)

    def deletions(self, limit: int = 50) -> Sequence[Deletion]:
        """The deletions that can be undone, the latest first: those of which a memory or a file is away."""
        return self._followed.run(lambda opened: _kept(opened, away=True))[:limit]

    def _with_checkpoint(
        self, memories: Sequence[MemoryRecord], why: str, named: str, folder: str, confirm: bool, dry_run: bool
    ) -> Deleted:
        if dry_run or not memories:
            return Deleted(tuple(memories))
        if not confirm:
            message = f"deleting {_counted(memories)} must be confirmed: {why}"
            raise SpeckitError("E105", message)
        checkpoint = ""
        if named:
            checkpoint = timed(named)
            self.checkpoint_create(checkpoint, folder=folder)
            require_wanted()  # from here on nothing is left half done
        with self._one_at_a_time():
            there = self._there(memories)
            left = [one for one in memories if one.id in there]
            return self._deleted(left, why, checkpoint) if left else Deleted((), checkpoint=checkpoint)

    def _one_at_a_time(self, idle: bool = False) -> AbstractContextManager[None]:
        """Keeps other changes of documents out, but for one that is `idle` and changes nothing."""
        from speckit_memory.memory.editing.one_at_a_time import one_at_a_time

        return nullcontext() if idle else one_at_a_time(self._followed.current.database.path)

    def _there(self, memories: Sequence[MemoryRecord]) -> frozenset[int]:
        """The ids of those that nobody has deleted meanwhile."""
        from speckit_memory.memory.store.checkpoints import restoring

        wanted = [one.id for one in memories]
        return self._followed.run(lambda opened: restoring.there(opened.database.reader(), wanted))

    def _deleted(self, memories: Sequence[MemoryRecord], why: str, checkpoint: str = "") -> Deleted:
        """Keeps the rows, moves the files aside, then removes the rows: whoever is killed meanwhile has lost nothing,
        and the next index run or an undoing goes on from there."""
        from speckit_memory.memory.editing import aside
        from speckit_memory.memory.lifecycle import interference
        from speckit_memory.memory.store.checkpoints import deletions
        from speckit_memory.memory.store.reading import reader
        from speckit_memory.memory.store.writing import writer
        from speckit_memory.memory.store.writing.links import resolve_links

        keys = {one.id: one.key for one in memories}

        def run(opened: OpenStore) -> tuple[str, list[str]]:
            opened.usage.write()  # what was counted belongs to what is kept
            stored = reader.known_files(opened.database.reader())
            own = [key for key in keys.values() if key in stored and stored[key].mtime_ns is not None]
            self._require_own(opened, own)
            for left in _kept(opened, away=False):
                if left.at < time.time() - LEFT_SECONDS:  # else its process may be about to take them
                    deletions.drop(opened.database.path, left)
                    aside.move_back(self.settings.root, (), left.files)  # which takes the empty folder away
            gone = deletions.keep(opened.database, keys, why, now=time.time())
            try:
                files = aside.move_aside(self.settings.root, own, gone.files)
                try:
                    with opened.database.write() as txn:
                        writer.delete_memories(txn, list(keys))
                        resolve_links(txn, time.time())
                except SpeckitError:
                    aside.move_back(self.settings.root, files, gone.files)
                    raise
            except SpeckitError:
                deletions.drop(opened.database.path, gone)
                raise
            interference.recount(opened.database)
            return gone.name, files

        name, files = self._followed.run(run, repeatable=False)
        self._followed.upkeep.forgotten()
        return Deleted(tuple(memories), name, tuple(files), checkpoint)

    def _require_own(self, opened: OpenStore, keys: Sequence[str]) -> None:
        """Raises E101 where a memory is of another workspace that shares the store, whatever has its name in this."""
        from speckit_memory.memory.scanning.scanner import below
        from speckit_memory.memory.scanning.workspace_sources import WorkspaceSources

        connection, sources = opened.database.reader(), WorkspaceSources(opened.database, self.settings.root)
        elsewhere, known = sources.elsewhere(connection), sources.known(connection)
        for key in keys:
            if elsewhere(key) and not any(below(key, source) for source in known):
                message = f"{key} is of another workspace that has this store, and not of {self.settings.root}"
                raise SpeckitError("E101", message, actions=("delete it in that workspace",))

    def _all(self, folder: str) -> Sequence[MemoryRecord]:
        return sorted(self.list(folder, limit=2**31)[0], key=lambda memory: memory.key)

    def _require_free(self, gone: Deletion, files: Sequence[str]) -> None:
        """Raises E108 where a memory or a file of that name has come since."""
        from speckit_memory.memory.store.checkpoints import deletions

        back = self._followed.run(lambda opened: deletions.there(opened.database.reader(), gone))
        problems: list[Problem] = []
        for each, key in gone.memories.items():
            if key in files and lexists(self.settings.root / key):
                problems += SpeckitError("E108", f"{key}: there is another file of that name").problems
                continue
            if each in back:
                continue
            with suppress(SpeckitError):
                self.get(key)
                problems += SpeckitError("E108", f"{key}: there is another memory of that key").problems
        if problems:
            raise SpeckitError.of(problems)


def _kept(opened: OpenStore, *, away: bool) -> Sequence[Deletion]:
    """With `away` the deletions of which a memory or a file is away; else those of which everything is there, because
    their process was killed before it took anything, or the one that undid them before it was done."""
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


def _counted(memories: Sequence[MemoryRecord]) -> str:
    return "1 memory" if len(memories) == 1 else f"{len(memories)} memories"
