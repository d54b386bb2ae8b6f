"""What a memory tells of the pipelines that run beside its own."""

from __future__ import annotations

from speckit_memory.engine.shadowing.harmless import harmless
from speckit_memory.engine.shadowing.search import Search
from speckit_memory.engine.shadowing.shadows import LEAVING_SECONDS, Shadows
from speckit_memory.engine.shadowing.variant import ShadowState


class Shadowed:
    """The part of `engine.memory.Memory` that has to do with pipelines beside it."""

    _shadows: Shadows | None

    def _watched(self, query_id: str) -> Search | None:
        """A search that variants may see; None where there are none, or nothing can be asked of them."""
        with harmless("the variants do not see a query"):
            return self._shadows.search(query_id) if self._shadows else None
        return None

    @property
    def shadows(self) -> tuple[ShadowState, ...]:
        """How the pipelines fare that run beside this one, after the replies (docs/shadows.md)."""
        return self._shadows.states() if self._shadows else ()

    def finish_shadows(self, timeout: float = 10.0) -> bool:
        """Waits until all of them have answered what was asked so far, so many seconds at most; whether they have."""
        return self._shadows is None or self._shadows.finish(timeout)

    def end_shadows(self) -> None:
        """Waits for them a moment, for who ends this process; what has not run then is dropped, and counted."""
        if self._shadows is not None:
            self._shadows.finish(LEAVING_SECONDS, leaving=True)
