"""Documents read and analysed by further processes, while this one writes (feature I8).

Helpers get lists of files or texts and send back what `Maker` made of them. They have no store, and nothing is lost
with one of them that ends or stands still: what it had been given is done here. Documents are taken in the order in
which they are given, so that the store becomes what it would have become without them.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET, socketpair
from threading import Lock, Thread
from time import sleep

from speckit_memory.errors import Problem
from speckit_memory.memory.indexing.making import LARGE, Made, Maker, Task, with_passages
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.embedders.static import StaticEmbedder
from speckit_memory.memory.parsing.analysis import Analyser

LEAST_FILES = 1_000
"""Fewer documents are made sooner than a helper has started."""
TASKS_AT_ONCE = 16
"""Documents of one list, which is sent back as a whole."""
PATIENCE_SECONDS = 30
"""A helper that neither takes nor sends anything for so long, while something is asked of it, is given up: somebody may
have stopped it. One whose disk is slow, or that others leave no time, still sends signs of life."""
SIGNS = 6
"""So many of them come within that time."""
LISTS_AHEAD = 2
"""Lists that a helper holds: one that it works at, and the next one."""
NICENESS = 10
"""Helpers give way to whoever searches meanwhile."""
_LAST_SECONDS = 2.0
"""How long a helper may take to end before it is killed."""
_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from speckit_memory.memory.indexing.helpers import main; main()"

Work = list[Task | Source]


def helpful_processes() -> int:
    """How many helpers are of use on this machine: one per processor, none where there is a single one; at most 4."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if processors < 2 else min(processors, 4)


@contextmanager
def beside(
    tasks: Iterable[Task | Source], maker: Maker, embedder: Embedder | None, processes: int, report: IndexReport
) -> Iterator[Iterable[Made]]:
    """What becomes of files and texts, in order, made by at most so many helpers; here, without any, where that is as
    fast. So many of the `tasks` are held as tell whether they are many.

    Models other than the bundled one stay in this process: they take turns anyway. The end of the block ends the
    helpers. One that ends before, or stands still, is told in the report.
    """
    bundled = embedder is not None and type(embedder) is StaticEmbedder and embedder.is_bundled
    if processes < 1 or type(maker.analyser) is not Analyser or os.name != "posix":
        yield map(maker.made, tasks)
        return
    waiting = iter(tasks)
    first = list(islice(waiting, LEAST_FILES))
    if len(first) < LEAST_FILES:
        yield map(maker.made, first)
        return
    helpers: list[_Helper] = []
    try:
        with suppress(OSError):  # no more processes, or no memory for them: then with those there are
            helpers += (_Helper() for _ in range(processes))
        for helper in helpers:
            helper.begin(maker, bundled)
        yield _together(helpers, chain(first, waiting), maker, report)
    finally:
        for helper in helpers:
            helper.end()


def _together(
    helpers: Sequence[_Helper], tasks: Iterator[Task | Source], maker: Maker, report: IndexReport
) -> Iterator[Made]:
    lists = iter(lambda: list(islice(tasks, TASKS_AT_ONCE)), [])
    following = next(lists, None)
    waiting: deque[tuple[_Helper | None, Work]] = deque()  # lists in their order, each with who has it
    while following or waiting:
        for _ in range(LISTS_AHEAD):
            for helper in helpers:
                if following and helper.alive and helper.holds < LISTS_AHEAD:
                    waiting.append((helper if helper.take(following) else None, following))
                    following = next(lists, None)
        if following and not waiting:
            waiting.append((None, following))
            following = next(lists, None)
        who, work = waiting.popleft()
        answer = who.answer() if who else None
        if who and answer is None and not who.told:
            who.told = True
            message = f"a process that helped to read the files ended: {who.status()}"
            report.problems.append(Problem("E096", message))
        made = deque(answer or [None] * len(work))
        del answer
        for task in work:
            yield made.popleft() or maker.made(task)


class _Helper:
    """One process, in a session of its own, so that an interrupt from the terminal reaches this one alone. It ends when
    its connection does, which the system closes whatever becomes of this process."""

    def __init__(self) -> None:
        here, there = socketpair()
        for limit in (SO_RCVTIMEO, SO_SNDTIMEO):  # also in the middle of a message, where `poll` would be of no use
            here.setsockopt(SOL_SOCKET, limit, struct.pack("@ll", PATIENCE_SECONDS, 0))
        path = [entry or str(Path.cwd()) for entry in sys.path]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, str(there.fileno()), *path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(there.fileno(),),
                start_new_session=True,
            )
        except OSError:
            here.close()
            raise
        finally:
            there.close()
        self._connection: Connection = Connection(here.detach())
        self._stands_still = False
        self.alive = True
        self.told = False
        self.holds = 0

    def begin(self, maker: Maker, bundled: bool) -> None:
        """Says by which rules it works, and whether it finds the vectors of the bundled model."""
        self._send((maker.sizes, maker.rules, bundled, PATIENCE_SECONDS / SIGNS))

    def take(self, work: Work) -> bool:
        """Gives it a list; False when it has ended."""
        self.holds += self._send(work)
        return self.alive

    def answer(self) -> list[Made | None] | None:
        """What it made of the list given first, None for a file that it left to this process; None when it ended."""
        if not self.alive:
            return None
        made: list[Made | None] | None = None
        try:
            while made is None:  # a sign of life
                made = self._connection.recv()
        except (EOFError, OSError) as error:
            self._lost(error)
            return None
        self.holds -= 1
        return made

    def status(self) -> str:
        """How it ended."""
        if self._stands_still:
            return f"it stood still for {PATIENCE_SECONDS} seconds, and this process does its work"
        try:
            status = self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed the connection"
        return f"signal {-status}" if status < 0 else f"status {status}"

    def end(self) -> None:
        """Ends it, whatever it is at."""
        self._connection.close()
        self._process.terminate()
        try:
            self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: object) -> bool:
        try:
            self._connection.send(message)
        except OSError as error:
            self._lost(error)
        return self.alive

    def _lost(self, error: Exception) -> None:
        """Nothing more comes from it; one that stands still is ended at once, by what a stopped process obeys too."""
        self.alive = False
        if isinstance(error, BlockingIOError):
            self._stands_still = True
            self._process.kill()


def main() -> None:
    """The whole life of a helper, whose connection is the descriptor that the command line names."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(EOFError, OSError), Connection(int(sys.argv[1])) as connection:  # it is over when the other end is
        sizes, rules, bundled, pause = connection.recv()
        sending = Lock()
        Thread(target=_live, args=(connection, sending, pause), daemon=True).start()
        maker, embedder = Maker(Analyser(), sizes, rules), StaticEmbedder() if bundled else None
        given: SimpleQueue[Work | None] = SimpleQueue()
        Thread(target=_take, args=(connection, given), daemon=True).start()
        while (work := given.get()) is not None:
            made = _made(maker, embedder, work)
            with sending:
                connection.send(made)


def _live(connection: Connection, sending: Lock, pause: float) -> None:
    """Sends a sign of life after each `pause` (seconds), whatever the process waits for; none when it is stopped."""
    with suppress(OSError):
        while True:
            sleep(pause)
            with sending:
                connection.send(None)


def _take(connection: Connection, given: SimpleQueue[Work | None]) -> None:
    """Takes every list as soon as it comes: were it left in the connection while this process sends what it made, and
    the list longer than what a connection holds (8 kB on some systems), each end would wait for the other for ever."""
    with suppress(EOFError, OSError):
        while True:
            given.put(connection.recv())
    given.put(None)


def _made(maker: Maker, embedder: StaticEmbedder | None, work: Work) -> list[Made | None]:
    """What becomes of the documents of a list; None for those that are too much to be sent."""
    made: list[Made | None] = []
    characters = 0
    for task in work:
        if isinstance(task, Source):
            characters += len(task.text)
        else:
            with suppress(OSError):  # what cannot be looked at is found out by reading it
                characters += task.file.path.stat().st_size
        made.append(maker.made(task) if characters <= LARGE else None)
    kept = iter(with_passages([each for each in made if each is not None], embedder))
    return [next(kept) if each is not None else None for each in made]
