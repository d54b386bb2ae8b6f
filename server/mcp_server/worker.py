"""The process of a worker: answers reading calls until the server closes the connection."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from socket import socket
from threading import Thread
from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.isolation.wire import ArrayWire, EndedError
from speckit_memory.pipeline.process.cancellation import Withdrawal
from speckit_memory.server.calls.tool import SpeckitTool, ToolAnswer
from speckit_memory.server.calls.worker_processes import WARM_UP, WITHDRAW, WorkerOptions, receive, send, wire_of
from speckit_memory.server.logging import logs
from speckit_memory.server.logging.log_stream import detach
from speckit_memory.server.mcp_server.app import tools, workspace_of
from speckit_memory.server.replies.worker_calls import ThreadLimits, share_one_arena
from speckit_memory.server.workspace.idle_workspaces import IDLE_SECONDS, LOOK_SECONDS, close_unused
from speckit_memory.server.workspace.workspace import Workspace

MOST_PRINCIPALS = 4
"""Principals of a workspace whose stores a worker holds open: each has connections in each worker."""


class Worker:
    """The workspaces of the server, opened by the first call. Background work is shared as between any processes."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._limits = ThreadLimits()
        self._served: OrderedDict[tuple[str, str], tuple[Workspace, dict[str, SpeckitTool]]] = OrderedDict()
        """By workspace and principal, those used last at the end."""
        self._closes_idle = "" not in options.workspaces
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
                    thread.submit(self._warm_up, about[0])
                else:
                    self._withdrawal = Withdrawal()
                    thread.submit(self._answer, wire, self._withdrawal, *about)

    def _of(self, workspace: str, principal: str = "") -> tuple[Workspace, dict[str, SpeckitTool]]:
        """The workspace and the tools of a principal; those used least recently are closed. Raises SpeckitError."""
        key = (workspace, principal)
        if key not in self._served:
            root, profile = self._options.workspaces[workspace]
            common = self._options.common
            opened = workspace_of(
                replace(common, principal=principal) if principal else common,
                root,
                name=workspace,
                cache_seconds=self._options.cache_seconds,
            )
            made = tools(opened, self._limits, profile)
            self._served[key] = opened, {tool.name: tool for tool in made}
        self._served.move_to_end(key)
        while len(self._served) > MOST_PRINCIPALS * len(self._options.workspaces):
            _, (unused, _) = self._served.popitem(last=False)
            close_unused(unused, 0.0)
        return self._served[key]

    def _warm_up(self, workspace: str) -> None:
        self._of(workspace)[0].warm_up()

    def _answer(
        self,
        wire: ArrayWire,
        withdrawal: Withdrawal,
        workspace: str,
        principal: str,
        tool: str,
        arguments: Any,
        query_id: str,
    ) -> None:
        answer: ToolAnswer | None = None  # the server answers itself, and reports the error
        with withdrawal.asking(), logs.request(workspace, query_id), suppress(SpeckitError):
            answer = self._of(workspace, principal)[1][tool].answer(arguments)
        with suppress(EndedError):  # `serve` notices it, too
            send(wire, answer)

    def _look_for_idle(self, thread: ThreadPoolExecutor) -> None:
        with suppress(RuntimeError):  # the worker ends
            while True:
                time.sleep(LOOK_SECONDS)
                thread.submit(self._close_idle)

    def _close_idle(self) -> None:
        for workspace, _ in self._served.values():
            close_unused(workspace, IDLE_SECONDS)

    def close(self) -> None:
        """Closes the stores."""
        for workspace, _ in self._served.values():
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
