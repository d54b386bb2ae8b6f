"""The state that a memory serves: settings, pipeline and variants, replaced as a whole between searches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.background.best_effort import harmless
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.shadowing.replays import Replays
from speckit_memory.engine.shadowing.search import ShadowSearch
from speckit_memory.engine.shadowing.shadows import LEAVING_SECONDS, Shadows
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.model.describing import kind_of

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import SearchResult

KEPT = 4
"""Number of earlier pipelines kept for explaining their answers."""


def problems_of(error: Exception) -> tuple[Problem, ...]:
    """The problems of a pipeline that could not be built; for a component's exception only its type is given."""
    if isinstance(error, SpeckitError):
        return tuple(error.problems)
    return (Problem("E199", f"{kind_of(error)} while the pipeline was built"),)


@dataclass(frozen=True, slots=True)
class ConfigurationState:
    """One state of the configuration, ready to answer.

    `shadows` runs the live variants, and `replays` replays recorded queries; None without such variants.
    """

    settings: Settings
    searching: Searcher
    shadows: Shadows | None = None
    replays: Replays | None = None
    name: str = field(default_factory=lambda: uuid4().hex, init=False, compare=False)
    """A unique identifier of this state."""

    def watched(self, query_id: str) -> ShadowSearch | None:
        """The shadow search of a query; None if there are no variants or they fail."""
        with harmless("the variants do not see a query"):
            return self.shadows.search(query_id) if self.shadows else None
        return None


class ActiveConfiguration:
    """The state in force. A running search finishes with the state it began with. Thread-safe."""

    def __init__(self, serving: ConfigurationState) -> None:
        self._now = serving
        self._guard = Lock()
        self._searches: Counter[int] = Counter()
        self._earlier: deque[Searcher] = deque(maxlen=KEPT)
        self._leaving: list[Thread] = []

    @property
    def now(self) -> ConfigurationState:
        """The state for the next search."""
        return self._now

    @contextmanager
    def using(self) -> Iterator[ConfigurationState]:
        """The state for one search, protected from being retired during the block."""
        with self._guard:
            serving = self._now
            self._searches[id(serving.shadows)] += 1  # `_retire` ends the shadows of an earlier state at 0
        try:
            yield serving
        finally:
            with self._guard:
                self._searches[id(serving.shadows)] -= 1
                self._retire(serving.shadows)

    def put(self, serving: ConfigurationState) -> None:
        """Replaces the state in force."""
        with self._guard:
            before, self._now = self._now, serving
            if before.searching is not serving.searching:
                self._earlier.appendleft(before.searching)
            self._retire(before.shadows)
        if before.replays is not None and before.replays is not serving.replays:
            before.replays.end()

    def answered(self, result: SearchResult) -> Searcher:
        """The pipeline that gave an answer; the one in force if the answer is too old."""
        known = (self._now.searching, *self._earlier)
        return next((searching for searching in known if searching.gave(result)), known[0])

    def _retire(self, shadows: Shadows | None) -> None:
        """Ends the variants of an earlier state in a thread, once no search uses them."""
        if self._searches[id(shadows)]:
            return
        del self._searches[id(shadows)]
        if shadows is None or shadows is self._now.shadows:
            return
        with harmless("the variants of an earlier pipeline could not be ended"):
            thread = Thread(target=shadows.finish, args=(LEAVING_SECONDS,), kwargs={"leaving": True}, daemon=True)
            thread.name = "shadows end"
            thread.start()
            self._leaving = [*(one for one in self._leaving if one.is_alive()), thread]

    def end(self) -> None:
        """Ends replays, and ends live variants after waiting a moment. May be repeated."""
        if self._now.replays is not None:
            self._now.replays.end()
        if self._now.shadows is not None:
            self._now.shadows.finish(LEAVING_SECONDS, leaving=True)
        for thread in self._leaving:
            thread.join(LEAVING_SECONDS)
