"""Reads and analyses documents in helper processes while this process writes (feature I8).

Helpers receive lists of files or texts and send back the results of `SourceProcessor`. They have no access to the
store. If one ends or hangs, this process does its work, so nothing is lost. Results are taken in input order, so the
store is the same as without helpers.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing.connection import Connection
from queue import SimpleQueue
from socket import SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET, socketpair
from threading import Lock, Thread
from time import sleep

from speckit_memory.errors import Problem
from speckit_memory.memory.indexing.source_processing import (
    LARGE,
    ProcessedSource,
    SourceProcessor,
    SourceTask,
    with_passages,
)
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.models.embedders.protocol import Embedder
from speckit_memory.memory.models.embedders.static import StaticEmbedder
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.pipeline.process.python_process import start_python

LEAST_FILES = 1_000
"""Fewer documents than this are processed before a helper has even started."""
TASKS_AT_ONCE = 16
"""Documents per list; a list is sent back as a whole."""
PATIENCE_SECONDS = 30
"""Timeout after which a helper with work that neither receives nor sends anything is given up: it may have been
stopped. A helper slowed by its disk or by other processes still sends heartbeats."""
SIGNS = 6
"""Heartbeats within that time."""
LISTS_AHEAD = 2
"""Lists assigned to a helper: the one it works on and the next one."""
NICENESS = 10
"""Nice value of helpers, so that concurrent searches take precedence."""
_LAST_SECONDS = 2.0
"""Time to wait for a terminated helper before it is killed."""

Work = list[SourceTask | Source]


def helpful_processes() -> int:
    """Return the useful number of helpers on this machine: one per processor, at most 4, none on a single one."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if processors < 2 else min(processors, 4)


@contextmanager
def process_sources(
    tasks: Iterable[SourceTask | Source],
    maker: SourceProcessor,
    embedder: Embedder | None,
    processes: int,
    report: IndexReport,
) -> Iterator[Iterable[ProcessedSource]]:
    """Process files and texts in helper processes, or in this process if there are too few to pay off.

    Helpers compute vectors with the bundled model only; other models run in this process. Leaving the context ends the
    helpers.

    Args:
        tasks: Files and texts, consumed lazily; up to `LEAST_FILES` are buffered to decide whether helpers pay off.
        maker: Processes a file or text; also used here for the work of a lost helper.
        embedder: The model of the run.
        processes: The maximum number of helpers.
        report: Receives a problem (E096) for each helper that ended early or hung.

    Returns:
        A context manager with the results, in input order.
    """
    # type(...) is, not isinstance: a subclass may embed otherwise, and the helper builds the original.
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
        with suppress(OSError):  # out of processes or memory: use the helpers started so far
            helpers += (_Helper() for _ in range(processes))
        for helper in helpers:
            helper.begin(maker, bundled)
        yield _together(helpers, chain(first, waiting), maker, report)
    finally:
        for helper in helpers:
            helper.end()


def _together(
    helpers: Sequence[_Helper], tasks: Iterator[SourceTask | Source], maker: SourceProcessor, report: IndexReport
) -> Iterator[ProcessedSource]:
    # Invariant: `waiting` holds the assigned lists in input order, so that results are yielded in this order too.
    lists = iter(lambda: list(islice(tasks, TASKS_AT_ONCE)), [])
    following = next(lists, None)
    waiting: deque[tuple[_Helper | None, Work]] = deque()  # lists in order, each with its helper
    while following or waiting:
        # Round by round: every helper gets its first list before any gets a second one.
        for _ in range(LISTS_AHEAD):
            for helper in helpers:
                if following and helper.alive and helper.holds < LISTS_AHEAD:
                    waiting.append((helper if helper.take(following) else None, following))
                    following = next(lists, None)
        # No helper could take the next list: this process handles it.
        if following and not waiting:
            waiting.append((None, following))
            following = next(lists, None)
        who, work = waiting.popleft()
        answer = who.answer() if who else None
        if who and answer is None and not who.told:
            who.told = True
            message = f"a helper process that read files ended: {who.status()}"
            report.problems.append(Problem("E096", message))
        # None means "process it here": the helper is lost, or left this document out of its reply.
        made = deque(answer or [None] * len(work))
        # Releases the list itself; each document is freed once it is taken from `made`.
        del answer
        for task in work:
            yield made.popleft() or maker.made(task)


class _Helper:
    """A helper process. It runs in a separate session, so that a terminal interrupt only reaches this process, and ends
    when its connection closes, which the system does even if this process is killed."""

    def __init__(self) -> None:
        here, there = socketpair()
        for limit in (SO_RCVTIMEO, SO_SNDTIMEO):  # also limits a partial message, unlike `poll`
            # struct timeval as two C longs: seconds and microseconds, in the byte order of this machine.
            here.setsockopt(SOL_SOCKET, limit, struct.pack("@ll", PATIENCE_SECONDS, 0))
        try:
            self._process = start_python(
                __name__,
                there.fileno(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(there.fileno(),),
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
        # Lists assigned and not answered yet, at most LISTS_AHEAD.
        self.holds = 0

    def begin(self, maker: SourceProcessor, bundled: bool) -> None:
        """Send the rules, and whether to compute vectors with the bundled model."""
        self._send((maker.sizes, maker.rules, bundled, PATIENCE_SECONDS / SIGNS))

    def take(self, work: Work) -> bool:
        """Send a list of work; return False if the helper has ended."""
        self.holds += self._send(work)
        return self.alive

    def answer(self) -> list[ProcessedSource | None] | None:
        """Return the results of the oldest list, with None for files left to this process; None if the helper ended."""
        if not self.alive:
            return None
        made: list[ProcessedSource | None] | None = None
        try:
            while made is None:  # None is a heartbeat
                made = self._connection.recv()
        except (EOFError, OSError) as error:
            self._lost(error)
            return None
        self.holds -= 1
        return made

    def status(self) -> str:
        """Describe how the helper ended."""
        if self._stands_still:
            return f"it did not respond for {PATIENCE_SECONDS} seconds, and this process does its work"
        try:
            status = self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed the connection"
        return f"signal {-status}" if status < 0 else f"status {status}"

    def end(self) -> None:
        """End the helper, killing it if it does not terminate."""
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
        """Mark the helper as lost. A hung one is sent SIGKILL, which also ends a stopped process."""
        self.alive = False
        # A timeout of SO_RCVTIMEO or SO_SNDTIMEO arrives as EAGAIN, which Python raises as BlockingIOError.
        if isinstance(error, BlockingIOError):
            self._stands_still = True
            self._process.kill()


def main(descriptor: int) -> None:
    """Run a helper, which is connected by this file descriptor."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(EOFError, OSError), Connection(descriptor) as connection:  # ends when the other end closes
        sizes, rules, bundled, pause = connection.recv()
        sending = Lock()
        Thread(target=_live, args=(connection, sending, pause), daemon=True).start()
        # Three threads: heartbeats, receiving, and this one, which works; `sending` keeps their messages apart.
        maker, embedder = SourceProcessor(Analyser(), sizes, rules), StaticEmbedder() if bundled else None
        given: SimpleQueue[Work | None] = SimpleQueue()
        Thread(target=_take, args=(connection, given), daemon=True).start()
        while (work := given.get()) is not None:
            made = _process_work(maker, embedder, work)
            with sending:
                connection.send(made)


def _live(connection: Connection, sending: Lock, pause: float) -> None:
    """Send a heartbeat every `pause` seconds, in a thread of the helper; a stopped process sends none."""
    with suppress(OSError):
        while True:
            sleep(pause)
            with sending:
                connection.send(None)


def _take(connection: Connection, given: SimpleQueue[Work | None]) -> None:
    """Receive every list at once. Otherwise both ends could block in `send` for ever, if a list exceeds the buffer of
    the connection (8 kB on some systems) while this process sends results."""
    with suppress(EOFError, OSError):
        while True:
            given.put(connection.recv())
    given.put(None)


def _process_work(maker: SourceProcessor, embedder: StaticEmbedder | None, work: Work) -> list[ProcessedSource | None]:
    """Process the documents of a list; None for those that exceed the size limit of one reply."""
    made: list[ProcessedSource | None] = []
    characters = 0
    for task in work:
        if isinstance(task, Source):
            characters += len(task.text)
        else:
            with suppress(OSError):  # reading the file reports the error
                characters += task.file.path.stat().st_size
        # Sizes add up over the list, because the reply is one message.
        made.append(maker.made(task) if characters <= LARGE else None)
    kept = iter(with_passages([each for each in made if each is not None], embedder))
    return [next(kept) if each is not None else None for each in made]
