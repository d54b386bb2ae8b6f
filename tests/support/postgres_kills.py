"""Processes that save in one store in PostgreSQL while clients, backends and the whole server are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import postgres_server

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.reading import reader

WORKERS = 4
PATIENCE = 60.0
"""Seconds within which every process must save again after a kill."""
_WORKER = Path(__file__).with_name("postgres_worker.py")


@dataclass
class Figures:
    """What came of the saves of all processes."""

    kills: int = 0
    saved: int = 0
    refused: int = 0
    """Saves that were said not to be written; each was asked for again."""
    unknown: int = 0
    wrong: int = 0
    """Saves of which the store held something else than was said."""
    lost: int = 0
    """Acknowledged saves that the store does not hold."""
    doubled: int = 0
    """Transactions of which no process knew."""


class Worker:
    """A running process that saves."""

    def __init__(self, link: Path, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, str(_WORKER), str(link), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.strip() for line in iter(self.process.stdout.readline, ""))

    def numbers(self, outcome: str) -> list[int]:
        """The saves with this outcome."""
        return [int(line.split()[1]) for line in list(self.lines) if line.startswith(f"{outcome} ")]

    def end(self) -> None:
        """Lets the process finish its save; it must end well unless it was killed."""
        assert self.process.stdin is not None and self.process.stderr is not None
        with self.process:
            self.process.stdin.close()
            said = self.process.stderr.read()
            self.process.wait(PATIENCE)
            self._reader.join(PATIENCE)
        assert self.process.returncode in (0, -signal.SIGKILL), said


@dataclass
class Kills:
    """A store, its processes, and the ways to kill what they depend on."""

    link: Path
    server: Any
    chance: random.Random
    workers: list[Worker] = field(default_factory=list)
    killed: list[Worker] = field(default_factory=list)

    def start(self) -> None:
        """Starts another process."""
        self.workers.append(Worker(self.link, f"w{len(self.workers) + len(self.killed)}"))

    def client(self) -> None:
        """Kills a process and starts another one."""
        worker = self.workers.pop(self.chance.randrange(len(self.workers)))
        worker.process.kill()
        self.killed.append(worker)
        self.start()

    def session(self) -> None:
        """Terminates a session as an administrator does."""
        with self._administrator() as session:
            session.execute("SELECT pg_terminate_backend(%s)", (self._backend(session),))

    def backend(self) -> None:
        """Kills the process of a session, upon which the server restarts all of them."""
        with self._administrator() as session:
            os.kill(self._backend(session), signal.SIGKILL)

    def postmaster(self) -> None:
        """Kills the server, and starts it again."""
        postgres_server.kill_and_start(self.server)

    def until_all_save(self) -> None:
        """Waits until every process has saved again."""
        before = {worker.name: len(worker.numbers("saved")) for worker in self.workers}
        until = time.monotonic() + PATIENCE
        while any(len(worker.numbers("saved")) <= before[worker.name] for worker in self.workers):
            assert time.monotonic() < until, [worker.lines[-3:] for worker in self.workers]
            assert all(worker.process.poll() is None for worker in self.workers), self.workers[0].lines[-3:]
            time.sleep(0.01)

    @contextmanager
    def _administrator(self) -> Iterator[Any]:
        import psycopg

        with psycopg.connect(self.server.get_uri(), autocommit=True) as session:
            yield session

    def _backend(self, session: Any) -> int:
        found = session.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'speckit-memory' ORDER BY pid"
        ).fetchall()
        return int(self.chance.choice(found)[0])


WAYS: dict[str, Callable[[Kills], None]] = {
    "client": Kills.client,
    "session": Kills.session,
    "backend": Kills.backend,
    "postmaster": Kills.postmaster,
}


def try_kills(way: str, server: Any, link: Path, kills: int) -> Figures:
    """Kills in one way so often while processes save, and counts what the store holds in the end."""
    work = Kills(link, server, random.Random(f"{way} {kills}"))
    for _ in range(WORKERS):
        work.start()
    work.until_all_save()
    for _ in range(kills):
        time.sleep(work.chance.uniform(0.0, 0.2))
        WAYS[way](work)
        work.until_all_save()
    every = [*work.workers, *work.killed]
    for worker in every:
        worker.end()
    figures = Figures(kills=kills)
    with Database.open(link, create=False) as database:
        held = set(reader.known_files(database.reader()))
        commits = int(value(database.reader(), "SELECT max(count) FROM commits"))
    for worker in every:
        saved = [f"{worker.name}/{number}" for number in worker.numbers("saved")]
        figures.saved += len(saved)
        figures.lost += len(set(saved) - held)
        figures.refused += len(worker.numbers("refused"))
        figures.unknown += len(worker.numbers("unknown"))
        figures.wrong += len(worker.numbers("wrong"))
    # A killed process, or one that could not be told, may have written one memory that it did not report.
    unreported = len(held) - figures.saved
    assert 0 <= unreported + figures.lost <= len(work.killed) + figures.unknown, (unreported, figures)
    figures.doubled = commits - len(held)
    return figures
