"""The part of a memory that reports on variants and replays queries for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from speckit_memory.engine.serving.serving import ActiveConfiguration
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.engine.shadowing.replays import OnReplays, Pause
from speckit_memory.engine.shadowing.variant import ShadowState

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore


class ShadowOperations(ABC):
    """The operations of `engine.api.memory.Memory` on shadow pipelines."""

    _in_force: ActiveConfiguration

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
        """The open store."""

    def _replay(self, opened: OpenStore, pause: Pause) -> None:
        if (replays := self._in_force.now.replays) is not None:
            replays.run(opened, pause=pause)

    @property
    def shadows(self) -> tuple[ShadowState, ...]:
        """The state of each variant of this pipeline (docs/shadows.md)."""
        now = self._in_force.now
        replayed = self._followed.run(now.replays.states) if now.replays else ()
        return (*replayed, *(now.shadows.states() if now.shadows else ()))

    def finish_shadows(self, timeout: float | None = 10.0, progress: OnReplays = lambda _done, _total: None) -> bool:
        """Replays waiting queries for the shadows and waits for dark runs, for at most `timeout` seconds each.

        `progress` gets the numbers of replayed and of all queries. Returns whether nothing is left. Raises SpeckitError
        if queries cannot be replayed.
        """
        now = self._in_force.now
        done = now.shadows is None or now.shadows.finish(10.0 if timeout is None else timeout)
        replays = now.replays
        return (replays is None or self._followed.run(lambda opened: replays.run(opened, timeout, progress))) and done

    def end_shadows(self) -> None:
        """Stops replays, which continue in another process, and waits a moment for dark runs; for the end of a process.

        Dark runs that have not run then are dropped, and counted.
        """
        self._in_force.end()
