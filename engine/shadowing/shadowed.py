"""What a memory tells of the pipelines that run beside its own."""

from __future__ import annotations

from speckit_memory.engine.serving import Served
from speckit_memory.engine.shadowing.shadows import Shadows
from speckit_memory.engine.shadowing.variant import ShadowState


class Shadowed:
    """The part of `engine.memory.Memory` that has to do with pipelines beside it."""

    _in_force: Served

    @property
    def _shadows(self) -> Shadows | None:
        return self._in_force.now.shadows

    @property
    def shadows(self) -> tuple[ShadowState, ...]:
        """How the pipelines fare that run beside this one, after the replies (docs/shadows.md)."""
        return self._shadows.states() if self._shadows else ()

    def finish_shadows(self, timeout: float = 10.0) -> bool:
        """Waits until all of them have answered what was asked so far, so many seconds at most; whether they have."""
        return self._shadows is None or self._shadows.finish(timeout)

    def end_shadows(self) -> None:
        """Waits for them a moment, for who ends this process; what has not run then is dropped, and counted."""
        self._in_force.end()
