"""What a memory tells of the pipelines that are compared with its own, and how what waits for them is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from speckit_memory.engine.serving.serving import Served
from speckit_memory.engine.session.reopening import Following
from speckit_memory.engine.shadowing.replays import OnReplays, Pause
from speckit_memory.engine.shadowing.variant import ShadowState

if TYPE_CHECKING:
    from speckit_memory.engine.runtime.open_store import OpenStore


class Shadowed(ABC):
    """The part of `engine.api.memory.Memory` that has to do with pipelines beside it."""

    _in_force: Served

    @property
    @abstractmethod
    def _followed(self) -> Following:
        """The open store."""

    def _replay(self, opened: OpenStore, pause: Pause) -> None:
        if (replays := self._in_force.now.replays) is not None:
            replays.run(opened, pause=pause)

    @property
    def shadows(self) -> tuple[ShadowState, ...]:
        """How the pipelines fare that are compared with this one or measured beside it (docs/shadows.md)."""
        now = self._in_force.now
        replayed = self._followed.run(now.replays.states) if now.replays else ()
        return (*replayed, *(now.shadows.states() if now.shadows else ()))

    def finish_shadows(self, timeout: float | None = 10.0, progress: OnReplays = lambda _done, _total: None) -> bool:
        """Replays what waits for the shadows of this pipeline, and waits for its dark runs, so many seconds at most;
        whether nothing is left. `progress` is told how many of how many queries were replayed.

        Raises SpeckitError where nothing can be replayed.
        """
        now = self._in_force.now
        done = now.shadows is None or now.shadows.finish(10.0 if timeout is None else timeout)
        replays = now.replays
        return (replays is None or self._followed.run(lambda opened: replays.run(opened, timeout, progress))) and done

    def end_shadows(self) -> None:
        """Ends replays, which go on another time, and waits a moment for dark runs, for who ends this process; what has
        not run then is dropped, and counted."""
        self._in_force.end()
