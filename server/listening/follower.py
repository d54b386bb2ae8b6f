"""Follows the store, whoever writes to it, and has clients told of what changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.to_thread

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.failures import internal
from speckit_memory.server.logging import logs
from speckit_memory.server.resources.uris import MEMORY, names_in
from speckit_memory.server.workspace.workspace import NO_WORKSPACE, Workspace

LOOK_SECONDS = 1.0
"""So often a look is taken, while there is somebody to tell."""
_NOTHING_YET = ("E010", NO_WORKSPACE)


@dataclass(frozen=True, slots=True)
class Change:
    """Whether documents came, went or changed, and which of those that were asked for."""

    listed: bool
    changed: tuple[str, ...]


class Follower:
    """Compares the store with the look before. One look runs at a time, in a thread that counts as a tool's.

    A store is opened, and kept open, for nobody's sake who has asked for none of it: of what changed while it was
    closed such clients hear when it is open again.
    """

    def __init__(self, workspace: Workspace, limiter: anyio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._limiter = limiter
        self._last: int | None = None
        self._marks: dict[str, str] = {}
        self._unwanted: set[str] = set()
        self._failed = False

    async def run(
        self,
        anybody: Callable[[], bool],
        wanted: Callable[[], Iterable[str]],
        tell: Callable[[Change], Awaitable[None]],
    ) -> None:
        """Looks again and again, as long as `anybody` is there to be told."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            if not anybody():
                continue
            uris = tuple(wanted())
            with self._workspace.in_use(asked=bool(uris)):
                change = await self._in_thread(partial(self.look, uris))
            if change is not None and change.listed:
                try:
                    await tell(change)
                except Exception as error:  # of one client; the server and the others go on
                    self._note(internal(error))

    async def begin(self, uri: str) -> None:
        """Notes how a resource stands now: somebody wants to hear when that changes."""

        def note() -> None:
            if self._workspace.has_store:
                self.seen()  # before the mark: what changes from here on is found by the first look, too
            self._marks[uri] = self._mark(uri)

        await self._in_thread(note)

    def seen(self) -> None:
        """Notes that somebody is about to see the list as it stands now; for the thread that reads it."""
        if self._last is None:
            self._last = self._workspace.memory().since(None).last

    def look(self, wanted: Iterable[str]) -> Change:
        """What changed since the last look."""
        asked = set(wanted)
        self._forget(asked)
        if not self._workspace.has_store:
            listed, self._last = bool(self._last), 0
        elif not self._workspace.is_open and not (asked and self._last is not None):
            return Change(False, ())
        else:
            since = self._workspace.memory().since(self._last)
            listed, self._last = since.written, since.last
        if not listed:
            return Change(False, ())
        marks = {uri: self._mark(uri) for uri in asked}
        changed = tuple(uri for uri, mark in marks.items() if mark != self._marks.get(uri, mark))
        self._marks.update(marks)
        return Change(True, changed)

    def _forget(self, asked: set[str]) -> None:
        """Drops the marks of what nobody asked for twice: a mark is made before it is asked for."""
        unwanted = set(self._marks) - asked
        for uri in unwanted & self._unwanted:
            self._marks.pop(uri, None)
        self._unwanted = unwanted

    def _mark(self, uri: str) -> str:
        """How a memory stands; "" for one that is not there, and for what is no memory."""
        if not uri.startswith(MEMORY) or not self._workspace.has_store:
            return ""
        from speckit_memory.server.console.arguments.memory_names import memory_name

        names = [memory_name(name) for name in names_in(uri)]
        states = self._workspace.memory().states(names)
        return next((states[name] for name in names if name in states), "")

    async def _in_thread(self, work: Callable[[], Change | None]) -> Change | None:
        """What the work finds; None where it cannot be done now, which is logged the first time."""
        try:
            found = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
        except SpeckitError as error:
            if error.code not in _NOTHING_YET:
                self._note(error)
            return None
        except Exception as error:
            self._note(internal(error))
            return None
        self._failed = False
        return found

    def _note(self, error: SpeckitError) -> None:
        if not self._failed:
            logs.event("changes cannot be told", "warning", problems=[str(problem) for problem in error.problems])
        self._failed = True
