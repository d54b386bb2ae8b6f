"""`serve --watch`: indexes changed files in the background (feature I8), in one of the processes that serve a store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.failures import internal
from speckit_memory.server.logging import logs
from speckit_memory.server.workspace.workspace import NO_WORKSPACE, Workspace

Found = TypeVar("Found")
AGAIN_SECONDS = 3.0
"""How often to check whether there are sources, whether they changed, and whether the watching process has ended."""
LOCK = "watch"
_COUNTED = ("created", "updated", "renamed", "vanished", "returned", "failures")


class FileWatch:
    """Watches the sources of the store: the paths that were indexed, or the folder given to `memory_index_scan`.

    A failure is logged once and retried: the next change may resolve it.
    """

    def __init__(self, workspace: Workspace, limiter: anyio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._limiter = limiter
        self._waiting = anyio.CapacityLimiter(1)
        self._problem = ""

    async def run(self) -> None:
        """Watches until cancelled, whenever there are sources and no other process watches them."""
        from speckit_memory.config.files.file_lock import locked

        while True:
            try:
                if await self._counted(self._sources):
                    store = self._workspace.config.db
                    with suppress(TimeoutError), locked(store.with_name(f"{store.name}.{LOCK}"), patience=0.0):
                        while paths := await self._counted(self._sources):
                            await self._watch(paths)
            except Exception as error:
                self._note(error)
            await anyio.sleep(AGAIN_SECONDS)

    async def _watch(self, paths: tuple[Path, ...]) -> None:
        """Watches until the sources change."""
        ended = Event()
        logs.event("watching", sources=len(paths))
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_others, paths, ended)
            try:
                await anyio.to_thread.run_sync(
                    self._changes, paths, ended, abandon_on_cancel=True, limiter=self._waiting
                )
            finally:
                ended.set()
            group.cancel_scope.cancel()

    async def _until_others(self, paths: tuple[Path, ...], ended: Event) -> None:
        while not ended.is_set():
            await anyio.sleep(AGAIN_SECONDS)
            with suppress(SpeckitError):  # indexing reports it
                if await self._counted(self._sources) != paths:
                    ended.set()

    def _changes(self, paths: tuple[Path, ...], ended: Event) -> None:
        """Runs in a separate thread: indexes the files once, and after every change."""
        from speckit_memory.server.views.file_changes import changes

        for _ in changes(paths, self._workspace.config.root, ended):
            anyio.from_thread.run(self._index, paths)

    async def _index(self, paths: tuple[Path, ...]) -> None:
        def index() -> dict[str, int]:
            memory = self._workspace.memory()
            report = memory.index(paths, progress=self._workspace.on_progress)
            return {name: len(getattr(report, name)) for name in _COUNTED}

        try:
            counts = await self._counted(index)
        except Exception as error:
            self._note(error)
            return
        self._problem = ""
        if any(counts.values()):
            logs.event("indexed", **counts)

    def _sources(self) -> tuple[Path, ...]:
        """The files and folders to watch; none without a store."""
        if not self._workspace.has_store:
            return ()
        memory = self._workspace.memory()
        root = memory.session.settings.root
        return tuple(root / key if key else root for key in sorted(memory.documents.sources()))

    async def _counted(self, work: Callable[[], Found]) -> Found:
        """Runs work in a limited thread while the workspace is marked as in use, so that the store is not closed."""
        with self._workspace.in_use():
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)

    def _note(self, error: Exception) -> None:
        if isinstance(error, SpeckitError) and error.code == NO_WORKSPACE:
            return  # the client has not chosen a workspace
        told = str(error if isinstance(error, SpeckitError) else internal(error))
        if told != self._problem:
            logs.event("files are not watched", "warning", problems=[told])
        self._problem = told
