"""The process of a worker: answers reading calls until the server closes the connection."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from socket import socket
from threading import Thread
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.isolation.wire import ArrayWire, EndedError
from speckit_memory.pipeline.process.cancellation import Withdrawal
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.calls.worker_processes import WARM_UP, WITHDRAW, WorkerOptions, receive, send, wire_of
from speckit_memory.server.logging import logs
from speckit_memory.server.logging.log_stream import detach
from speckit_memory.server.mcp_server.app import tools, workspace_of
from speckit_memory.server.replies.worker_calls import ThreadLimits, share_one_arena
from speckit_memory.server.workspace.idle_workspaces import IDLE_SECONDS, LOOK_SECONDS
from speckit_memory.server.workspace.workspace import Workspace


class Worker:
    """The workspaces of the server, opened by the first call. Background work is shared as between any processes."""

    def __init__(self, options: WorkerOptions) -> None:
        self._workspaces: dict[str, Workspace] = {}
        self._tools: dict[tuple[str, str], SpeckitTool] = {}
        limits = ThreadLimits()
        for name, (root, profile) in options.workspaces.items():
            self._workspaces[name] = workspace_of(options.common, root, name=name, cache_seconds=options.cache_seconds)
            for tool in tools(self._workspaces[name], limits, profile):
                self._tools[name, tool.name] = tool
        self._closes_idle = "" not in self._workspaces
        self._withdrawal = Withdrawal()

    def serve(self, wire: ArrayWire) -> None:
        """Answers calls, one at a time, until the connection ends."""
        with ThreadPoolExecutor(1, "worker") as thread:
            if self._closes_idle:
                Thread(target=self._look_for_idle, args=(thread,), name="idle", daemon=True).start()
            while True:
                kind, *about = receive(wire)
                if kind == WITHDRAW:
                    self._withdrawal.withdraw()
                elif kind == WARM_UP:
                    thread.submit(self._workspaces[about[0]].warm_up)
                else:
                    self._withdrawal = Withdrawal()
                    thread.submit(self._answer, wire, self._withdrawal, *about)

    def _answer(
        self, wire: ArrayWire, withdrawal: Withdrawal, workspace: str, tool: str, arguments: Any, query_id: str
    ) -> None:
        with withdrawal.asking(), logs.request(workspace, query_id):
            answer = self._tools[workspace, tool].answer(arguments)
        with suppress(EndedError):  # `serve` notices it, too
            send(wire, answer)

    def _look_for_idle(self, thread: ThreadPoolExecutor) -> None:
        with suppress(RuntimeError):  # the worker ends
            while True:
                time.sleep(LOOK_SECONDS)
                thread.submit(self._close_idle)

    def _close_idle(self) -> None:
        for workspace in self._workspaces.values():
            with suppress(SpeckitError):
                workspace.close_if_idle(IDLE_SECONDS)

    def close(self) -> None:
        """Closes the stores."""
        for workspace in self._workspaces.values():
            workspace.finish(0)


def main(descriptor: int) -> None:
    """Serves until the server closes its end or is gone; does not return."""
    stream = detach()
    logs.configure()
    share_one_arena()
    end = socket(fileno=descriptor)
    end.set_inheritable(False)
    wire = wire_of(end)
    with suppress(EndedError, TimeoutError):  # nothing asked for days: the server starts another one
        [options] = receive(wire)
        worker = Worker(options)
        try:
            worker.serve(wire)
        finally:
            worker.close()
    stream.drain()
    os._exit(0)
