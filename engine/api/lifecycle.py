"""Background work on a store: the ages of its memories, its segment, its faults and their repair."""

from __future__ import annotations

import time
from dataclasses import dataclass

from speckit_memory.engine.api.checkpoints import CheckpointService, timestamped_name
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.store_check import check_store
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.engine.upkeep import maintenance
from speckit_memory.engine.upkeep.maintenance import MaintenanceReport
from speckit_memory.engine.upkeep.maintenance_jobs import jobs_for
from speckit_memory.engine.upkeep.upkeep_thread import write
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle import archival
from speckit_memory.memory.store.file.checking.consistency import inconsistencies
from speckit_memory.memory.store.tables.memories.archivals import ArchivedMemory, archived_memories
from speckit_memory.memory.store.writing import repairs
from speckit_memory.pipeline.process.yielding import Pause

_NAMED = 10
"""Maximum number of faults recorded with the checkpoint that is made before a repair."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The result of a repair: faults `mended`, faults `left`, and the checkpoint made `before`, "" if there was no
    fault."""

    mended: tuple[str, ...]
    left: tuple[str, ...]
    before: str


@dataclass(eq=False)
class LifecycleService:
    """Ages memories and keeps the store in order."""

    session: StoreSession

    def maintain(self, *, dry_run: bool = False) -> MaintenanceReport:
        """Runs the background work that is due (features I9, M5, M10 and M13), unless another process is running it.

        The work: delete ended sessions, archive memories that expired or are old, unused and doubted, embed memories
        without vectors, link memories that share names if `entities: link` is configured, and rank the causal graph.
        Raises SpeckitError if the store cannot be written.
        """
        work = maintenance.foreseen if dry_run else maintenance.run_due
        return self.session.write(lambda opened: work(opened.database, jobs_for(opened)))

    def archived(self) -> tuple[ArchivedMemory, ...]:
        """The archived memories, by key."""
        return self.session.read(lambda opened: tuple(archived_memories(opened.database.reader())))

    def unarchive(self, name: int | str) -> bool:
        """Restores a memory, by id or key, that was archived for its age or expiry date, so that searches find it
        (feature M5).

        An expired memory lives seven more days, whether or not background work has archived it yet. Returns False if it
        was neither archived nor expired. Raises E080.
        """
        _, restored = self.session.write(
            lambda opened: archival.unarchive(opened.database, name, time.time()), repeatable=False
        )
        return restored

    def keep_segment(self) -> None:
        """Keeps the store's segment up to date in a low-priority thread; for long-lived processes.

        A program that still searches a minute after it opened the store does this automatically.
        """
        self.session.upkeep.begin()

    def keep_maintained(self) -> None:
        """Makes that thread also run background jobs (see `maintain`) and replay queries for shadows; for servers."""
        self.session.upkeep.begin(jobs=True, replay=self._replay)

    def write_segment(self) -> None:
        """Writes the store's segment now, due or not: searches that start from this file need not read the tables
        first.

        Raises E029 if it cannot be written; answers are the same without it.
        """
        self.session.read(lambda opened: write(opened, only_if_due=False))

    def check(self, *, every_word: bool = True) -> tuple[str, ...]:
        """The faults of the store's file, one sentence each; empty if it is healthy.

        Comparing the terms of the full-text rows takes some seconds per million words. Without `every_word` a store of
        more than half a million words is sampled, as by `Memory.status`, which reports the share.
        """
        return self.session.read(lambda opened: check_store(opened.database, every_word=every_word).wrong)

    def repair(self) -> RepairReport:
        """Rebuilds derived data and removes dangling rows, after making a checkpoint.

        Raises E024, and E062 if the checkpoint cannot be made; the store is unchanged then.
        """

        def mend(opened: OpenStore) -> list[str]:
            with opened.database.write() as txn:
                done = repairs.mend(txn, found.stale)
                if new := [fault for fault in inconsistencies(txn.connection) if fault not in found.wrong]:
                    raise SpeckitError("E024", f"the repair would break the store: {new[0]}; nothing was changed")
                return done

        found = self.session.read(lambda opened: check_store(opened.database, every_word=True))
        if not found.wrong:
            return RepairReport((), (), "")
        before = timestamped_name("before-repair")
        CheckpointService(self.session).make(before, "", {"before": "repair", "wrong": found.wrong[:_NAMED]}, ())
        done = self.session.write(mend, create=True)
        self.session.upkeep.indexed()
        left = self.session.read(lambda opened: check_store(opened.database, only=found.stale).wrong)
        return RepairReport(tuple(done), left, before)

    def _replay(self, opened: OpenStore, pause: Pause) -> None:
        if (replays := self.session.configuration.now.replays) is not None:
            replays.run(opened, pause=pause)
