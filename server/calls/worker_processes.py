"""Worker processes that answer reading calls: Python runs one thread at a time, and every core needs its own process.

The process of the server keeps the clients, their sessions and everything that writes. A worker answers one call at a
time, on the same store.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, PriorityQueue
from socket import socket, socketpair
from threading import Event, Lock, Thread
from typing import Any

from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.pipeline.isolation.wire import ArrayWire, EndedError
from speckit_memory.pipeline.process.cancellation import WithdrawnError, require_wanted
from speckit_memory.pipeline.process.python_process import start_python
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.logging import logs

MOST_WORKERS = 4
"""Workers unless a number is given: each takes the memory of a server."""
CALL, WITHDRAW, WARM_UP = "call", "withdraw", "warm up"
LOOK_SECONDS = 0.1
"""How often to check whether the caller of a running call has left."""
PATIENCE_SECONDS = 5.0
"""How long a call waits for a free worker before this process answers it."""
AGAIN_SECONDS = 1.0
"""Pause before a worker that ended is replaced, so that one that cannot live does not keep a core busy."""
LAST_SECONDS = 2.0
"""How long workers may take to close their stores before they are killed."""
_LONGEST = 1 << 30


def usual_workers() -> int:
    """The number of workers by default: one per core that this process may use, at most `MOST_WORKERS`."""
    if sys.platform == "win32":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker serves: the options of the server, and the folder and tool profile of each workspace by name.

    A single workspace has the name "" and no folder.
    """

    common: Common
    workspaces: Mapping[str, tuple[Path | None, ToolProfile]]
    cache_seconds: float


def wire_of(end: socket) -> ArrayWire:
    """The connection between a server and a worker. Both ends are ours, so messages are pickled."""
    return ArrayWire(end, _LONGEST, 0)


def send(wire: ArrayWire, *message: Any) -> None:
    """Sends a message. Raises EndedError if the other end is closed."""
    wire.send(pickle.dumps(message), b"", _for_ever)


def receive(wire: ArrayWire) -> tuple[Any, ...]:
    """Waits for the next message. Raises EndedError if the other end is closed."""
    message: tuple[Any, ...] = pickle.loads(wire.receive(_for_ever)[0])
    return message


def _for_ever() -> float:
    return 1e6


class WorkerProcess:
    """One process from start to end. One thread at a time asks it. Workers with lower numbers are asked first, since
    each has its own cache of answers."""

    def __init__(self, number: int, options: WorkerOptions) -> None:
        """Raises OSError if no process can be started."""
        self.number = number
        self.is_alive = True
        """Whether it takes calls, as far as this process has noticed."""
        self._sending = Lock()  # a store may be warmed up while a call is asked
        self._end, there = socketpair()
        try:
            self._process = start_python(
                "speckit_memory.server.mcp_server.worker",
                there.fileno(),
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(there.fileno(),),
            )
        except OSError:
            self._end.close()
            raise
        finally:
            there.close()
        self._wire = wire_of(self._end)
        with suppress(EndedError):  # `wait` reports the end
            self._send(options)

    def __lt__(self, other: WorkerProcess) -> bool:
        return self.number < other.number

    def ask(self, workspace: str, principal: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Returns the answer to a call.

        Args:
            workspace: Name of the workspace.
            principal: Whose memory is read; "" for that of the server.
            tool: Name of the tool.
            arguments: Its arguments.

        Raises:
            EndedError: If the process ends.
            WithdrawnError: If the caller leaves; the worker has finished with the call in either case.
        """
        try:
            self._send(CALL, workspace, principal, tool, dict(arguments), logs.query_id())
            try:
                while not select.select([self._end], [], [], LOOK_SECONDS)[0]:
                    require_wanted()
            except WithdrawnError:
                self._send(WITHDRAW)
                receive(self._wire)
                raise
            return receive(self._wire)[0]
        except EndedError:
            self.is_alive = False
            raise

    def warm_up(self, workspace: str) -> None:
        """Makes the worker load a store while it has no call to answer."""
        with suppress(EndedError):
            self._send(WARM_UP, workspace)

    def _send(self, *message: Any) -> None:
        with self._sending:
            send(self._wire, *message)

    def wait(self) -> int:
        """Waits until the process has ended; returns its exit status."""
        status = self._process.wait()
        self.is_alive = False
        return status

    def end(self) -> None:
        """Closes the connection, upon which the worker closes its stores and ends."""
        self._wire.close()

    def kill(self, seconds: float) -> None:
        """Kills the process unless it ends within these seconds."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class WorkerProcesses:
    """The workers of a server. A worker that ends is replaced; its call is given to another one once."""

    def __init__(self, count: int, options: WorkerOptions) -> None:
        """Starts `count` workers."""
        self._options = options
        self._free: PriorityQueue[WorkerProcess] = PriorityQueue()
        self._guard = Lock()
        self._living: dict[int, WorkerProcess] = {}
        self._warm: set[str] = set()
        self._closing = Event()
        for number in range(count):
            Thread(target=self._keep, args=(number,), name=f"worker-{number}", daemon=True).start()

    def answer(self, workspace: str, principal: str, tool: str, arguments: Mapping[str, Any]) -> Any | None:
        """Returns the answer of a worker to a reading call; None if this process has to answer itself.

        Args:
            workspace: Name of the workspace.
            principal: Whose memory is read; "" for that of the server.
            tool: Name of the tool.
            arguments: Its arguments.

        Raises:
            EndedError: If two workers ended at this call.
        """
        for is_last in (False, True):
            try:
                with self._turn() as worker:
                    return worker.ask(workspace, principal, tool, arguments) if worker else None
            except EndedError:
                if is_last:
                    raise
        return None

    def warm_up(self, workspace: str) -> None:
        """Makes the workers, and those that replace them, load a store."""
        with self._guard:
            self._warm.add(workspace)
            workers = tuple(self._living.values())
        for worker in workers:
            worker.warm_up(workspace)

    def close(self) -> None:
        """Ends all workers."""
        self._closing.set()
        with self._guard:
            workers = tuple(self._living.values())
        until = time.monotonic() + LAST_SECONDS
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.kill(until - time.monotonic())

    @contextmanager
    def _turn(self) -> Iterator[WorkerProcess | None]:
        """A worker for one call; None if none is free in time."""
        worker = None
        with suppress(Empty):
            # a worker that ended while it was free is still queued
            while not (worker := self._free.get(timeout=PATIENCE_SECONDS)).is_alive:
                pass
        try:
            yield worker
        finally:
            if worker is not None and worker.is_alive:
                self._free.put(worker)

    def _keep(self, number: int) -> None:
        """Keeps one worker running; runs in its own thread."""
        while not self._closing.is_set():
            try:
                worker = WorkerProcess(number, self._options)
            except OSError as error:
                logs.event("worker cannot be started", "warning", problems=[error.strerror])
            else:
                with self._guard:
                    self._living[number] = worker
                    warm = tuple(self._warm)
                for workspace in warm:
                    worker.warm_up(workspace)
                self._free.put(worker)
                status = worker.wait()
                if not self._closing.is_set():
                    logs.event("worker has ended", "warning", worker=number, status=status)
            self._closing.wait(AGAIN_SECONDS)


Elsewhere = Callable[[str, Mapping[str, Any]], Any | None]
"""Answers a call of a tool in another process: its name and arguments; None if this process has to answer."""
