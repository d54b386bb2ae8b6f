"""What a memory answers with: settings, a pipeline and what runs beside it, replaced as a whole between searches."""

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
from speckit_memory.engine.search.searcher import Searching
from speckit_memory.engine.shadowing.replays import Replays
from speckit_memory.engine.shadowing.search import Search
from speckit_memory.engine.shadowing.shadows import LEAVING_SECONDS, Shadows
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.model.describing import kind_of

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import SearchResult

KEPT = 4
"""Earlier pipelines that are kept to explain what they answered."""


def problems_of(error: Exception) -> tuple[Problem, ...]:
    """What is wrong with a pipeline that could not be built; of a component's defect only its type is told."""
    if isinstance(error, SpeckitError):
        return tuple(error.problems)
    return (Problem("E199", f"{kind_of(error)} while the pipeline was built"),)


@dataclass(frozen=True, slots=True)
class Serving:
    """One state of the configuration, ready to answer. `shadows` is what runs beside the pipeline, and `replays` what
    is asked its kept queries; None for nothing."""

    settings: Settings
    searching: Searching
    shadows: Shadows | None = None
    replays: Replays | None = None
    name: str = field(default_factory=lambda: uuid4().hex, init=False, compare=False)
    """Tells it from every other state."""

    def watched(self, query_id: str) -> Search | None:
        """A search that variants may see; None where there are none, or nothing can be asked of them."""
        with harmless("the variants do not see a query"):
            return self.shadows.search(query_id) if self.shadows else None
        return None


class Served:
    """The state in force. A search that is under way ends with the one it began with. Safe for several threads."""

    def __init__(self, serving: Serving) -> None:
        self._now = serving
        self._guard = Lock()
        self._searches: Counter[int] = Counter()
        self._earlier: deque[Searching] = deque(maxlen=KEPT)
        self._leaving: list[Thread] = []

    @property
    def now(self) -> Serving:
        """The state that the next search begins with."""
        return self._now

    @contextmanager
    def using(self) -> Iterator[Serving]:
        """The state for one search, whatever is put in its place meanwhile."""
        with self._guard:
            serving = self._now
            self._searches[id(serving.shadows)] += 1
        try:
            yield serving
        finally:
            with self._guard:
                self._searches[id(serving.shadows)] -= 1
                self._retire(serving.shadows)

    def put(self, serving: Serving) -> None:
        """Puts another state in the place of the one in force."""
        with self._guard:
            before, self._now = self._now, serving
            if before.searching is not serving.searching:
                self._earlier.appendleft(before.searching)
            self._retire(before.shadows)
        if before.replays is not None and before.replays is not serving.replays:
            before.replays.end()

    def answered(self, result: SearchResult) -> Searching:
        """The pipeline that gave an answer; the one in force, where that is too long ago."""
        known = (self._now.searching, *self._earlier)
        return next((searching for searching in known if searching.gave(result)), known[0])

    def _retire(self, shadows: Shadows | None) -> None:
        """Has a thread end what ran beside an earlier state, once no search may hand it anything: it waits a moment for
        what has not run."""
        if self._searches[id(shadows)]:
            return
        del self._searches[id(shadows)]
        if shadows is None or shadows is self._now.shadows:
            return
        with harmless("what ran beside an earlier pipeline could not be ended"):
            thread = Thread(target=shadows.finish, args=(LEAVING_SECONDS,), kwargs={"leaving": True}, daemon=True)
            thread.name = "shadows end"
            thread.start()
            self._leaving = [*(one for one in self._leaving if one.is_alive()), thread]

    def end(self) -> None:
        """Ends replays; waits a moment for what runs beside, and ends it. It may be repeated."""
        if self._now.replays is not None:
            self._now.replays.end()
        if self._now.shadows is not None:
            self._now.shadows.finish(LEAVING_SECONDS, leaving=True)
        for thread in self._leaving:
            thread.join(LEAVING_SECONDS)
