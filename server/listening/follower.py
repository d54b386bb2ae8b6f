"""Detects changes of the store by any process and notifies clients."""

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
"""How often the store is checked while a client receives notifications."""
_NOTHING_YET = ("E010", NO_WORKSPACE)


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """Whether documents were added, removed or changed, and the subscribed resources that changed."""

    listed: bool
    changed: tuple[str, ...]


class Follower:
    """Compares the store with its state at the previous check. One check runs at a time, in a limited thread.

    Clients without subscriptions do not keep a store open: they learn of changes made while it was closed when it is
    opened again.
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
        tell: Callable[[DocumentChange], Awaitable[None]],
    ) -> None:
        """Checks periodically and notifies clients.

        Args:
            anybody: Tells whether any client receives notifications; otherwise nothing is checked.
            wanted: Returns the subscribed URIs.
            tell: Notifies the clients.
        """
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
                except Exception as error:  # must not stop the server or the other clients
                    self._note(internal(error))

    async def begin(self, uri: str) -> None:
        """Records the state of a resource that a client subscribes to."""

        def note() -> None:
            if self._workspace.has_store:
                self.seen()  # before the mark, so that the first check finds every later change
            self._marks[uri] = self._mark(uri)

        await self._in_thread(note)

    def seen(self) -> None:
        """Records the state of the list before it is read; called in the reading thread."""
        if self._last is None:
            self._last = self._workspace.memory().inventory.changes_since(None).last

    def look(self, wanted: Iterable[str]) -> DocumentChange:
        """The changes since the last check."""
        asked = set(wanted)
        self._forget(asked)
        if not self._workspace.has_store:
            listed, self._last = bool(self._last), 0
        elif not self._workspace.is_open and not (asked and self._last is not None):
            return DocumentChange(False, ())
        else:
            since = self._workspace.memory().inventory.changes_since(self._last)
            listed, self._last = since.written, since.last
        if not listed:
            return DocumentChange(False, ())
        marks = {uri: self._mark(uri) for uri in asked}
        changed = tuple(uri for uri, mark in marks.items() if mark != self._marks.get(uri, mark))
        self._marks.update(marks)
        return DocumentChange(True, changed)

    def _forget(self, asked: set[str]) -> None:
        """Drops marks that had no subscription in two successive checks: a mark is made before its subscription."""
        unwanted = set(self._marks) - asked
        for uri in unwanted & self._unwanted:
            self._marks.pop(uri, None)
        self._unwanted = unwanted

    def _mark(self, uri: str) -> str:
        """The state of a memory; "" if there is none, or if the URI names no memory."""
        if not uri.startswith(MEMORY) or not self._workspace.has_store:
            return ""
        from speckit_memory.server.console.arguments.memory_names import memory_name

        names = [memory_name(name) for name in names_in(uri)]
        states = self._workspace.memory().inventory.states(names)
        return next((states[name] for name in names if name in states), "")

    async def _in_thread(self, work: Callable[[], DocumentChange | None]) -> DocumentChange | None:
        """The result of the work; None if it fails, which is logged the first time."""
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
            logs.event("changes cannot be detected", "warning", problems=[str(problem) for problem in error.problems])
        self._failed = True
