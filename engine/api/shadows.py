"""The part of a memory that reports on variants and replays queries for them."""

from __future__ import annotations

from dataclasses import dataclass

from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.engine.shadowing.replays import OnReplays
from speckit_memory.engine.shadowing.variant import ShadowState


@dataclass(eq=False)
class ShadowService:
    """The operations of `engine.api.memory.Memory` on shadow pipelines."""

    session: StoreSession

    def list(self) -> tuple[ShadowState, ...]:
        """The state of each variant of this pipeline (docs/shadows.md)."""
        now = self.session.configuration.now
        replayed = self.session.read(now.replays.states) if now.replays else ()
        return (*replayed, *(now.shadows.states() if now.shadows else ()))

    def finish(self, timeout: float | None = 10.0, progress: OnReplays = lambda _done, _total: None) -> bool:
        """Replays waiting queries for the shadows and waits for dark runs, for at most `timeout` seconds each.

        `progress` gets the numbers of replayed and of all queries. Returns whether nothing is left. Raises SpeckitError
        if queries cannot be replayed.
        """
        now = self.session.configuration.now
        done = now.shadows is None or now.shadows.finish(10.0 if timeout is None else timeout)
        replays = now.replays
        return (replays is None or self.session.read(lambda opened: replays.run(opened, timeout, progress))) and done

    def stop(self) -> None:
        """Stops replays, which continue in another process, and waits a moment for dark runs; for the end of a process.

        Dark runs that have not run then are dropped, and counted.
        """
        self.session.configuration.end()
