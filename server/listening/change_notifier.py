"""Runs a server's background tasks: change notifications and, optionally, the file watch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from speckit_memory.server.listening.clients import Clients
from speckit_memory.server.listening.file_watch import FileWatch
from speckit_memory.server.listening.follower import DocumentChange, Follower
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace


class ChangeNotifier:
    """Follows the store for a server's clients while the server runs."""

    def __init__(self, workspace: Workspace, limits: ThreadLimits, *, watch: bool) -> None:
        """With `watch`, changed files are indexed, too."""
        self._name = workspace.name
        self._follower = Follower(workspace, limits.reading)
        self._watch = FileWatch(workspace, limits.lengthy) if watch else None
        self.clients = Clients(self._follower.begin)
        self.seen: Callable[[], None] = self._follower.seen
        """Called before the list of resources is read, in the reading thread: later changes are notified."""

    def lifespan(self, _server: Any) -> AbstractAsyncContextManager[None]:
        """The context in which the server runs."""
        return self._running()

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            with logs.about(self._name):  # tasks inherit the context in which they start
                group.start_soon(self._follower.run, lambda: self.clients.any, self.clients.wanted, self._tell)
                if self._watch is not None:
                    group.start_soon(self._watch.run)
            yield
            group.cancel_scope.cancel()

    async def _tell(self, change: DocumentChange) -> None:
        await self.clients.tell(listed=change.listed, changed=change.changed)
