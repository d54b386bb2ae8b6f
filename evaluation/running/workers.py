"""Asks the queries of open datasets, in this process or in several."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from speckit_memory.engine import components
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.evaluation.ground_truth.judged_queries import JudgedQueries, JudgedQuery
from speckit_memory.evaluation.statistics.folds import Rows
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.ports import Column

Ask = Callable[[int, Mapping[str, str], Rows], dict[str, Column]]
"""The metrics of a pipeline with these overrides on a dataset, for the queries at these rows."""


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """The data that a process needs to ask: file, root folder and queries of each dataset, and the pipeline."""

    stores: tuple[tuple[Path, Path, tuple[JudgedQuery, ...]], ...]
    pipeline: PipelineSource
    environ: Mapping[str, str]
    now: float

    def ask(self, stack: ExitStack) -> Ask:
        """Opens the stores until `stack` is closed."""
        asked = []
        for file, root, queries in self.stores:
            memory = Memory.open(file, self.pipeline, root=root, environ=self.environ, create=False, shadows=False)
            asked.append(JudgedQueries(stack.enter_context(memory), queries, self.now))

        def ask(place: int, overrides: Mapping[str, str], rows: Rows) -> dict[str, Column]:
            return asked[place].values(
                build(self.pipeline, components.registry(self.environ), self.environ, overrides), rows
            )

        return ask


@contextmanager
def asking(work: EvaluationTask, jobs: int) -> Iterator[Ask]:
    """Asks in this process, or in `jobs` processes that each take every `jobs`-th query of each dataset."""
    with ExitStack() as stack:
        if jobs == 1:
            yield work.ask(stack)
            return
        ends = []
        for _ in range(jobs):
            # spawn, not fork: the parent has threads and open database connections
            here, there = get_context("spawn").Pipe()
            process = get_context("spawn").Process(target=_serve, args=(there, work), daemon=True)
            process.start()
            there.close()
            stack.callback(process.join)
            stack.callback(here.close)  # the process ends when its pipe is closed
            ends.append(here)
        yield _shared(ends)


def _shared(ends: Sequence[Connection]) -> Ask:
    """Sends each process its part of the rows and merges the results."""

    def ask(place: int, overrides: Mapping[str, str], rows: Rows) -> dict[str, Column]:
        # by row number, so that a query is always asked by the same process and its cache
        parts = [np.flatnonzero(rows % len(ends) == number) for number in range(len(ends))]
        for end, part in zip(ends, parts, strict=True):
            # All are sent to before any is received from, so that the processes work at the same time.
            with suppress(ConnectionError):  # receiving reports that the process has ended
                end.send((place, dict(overrides), rows[part]))
        together: dict[str, Column] = {}
        for end, part in zip(ends, parts, strict=True):
            found = _received(end)
            for metric, column in found.items():
                # column: (len(part),) float64 goes to the places of its rows in the answer.
                together.setdefault(metric, np.empty(len(rows)))[part] = column
        return together

    return ask


def _received(end: Connection) -> dict[str, Column]:
    try:
        found: dict[str, Column] | list[Problem] = end.recv()
    except (EOFError, ConnectionError):
        message = "a process that shared the work has ended; memory may be short"
        raise SpeckitError("E040", message, hint="Give fewer jobs.") from None
    if isinstance(found, list):
        raise SpeckitError.of(found)
    return found


def _serve(end: Connection, work: EvaluationTask) -> None:
    """The loop of one process: answers until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asking process is interrupted instead, and closes its end
    with ExitStack() as stack, suppress(EOFError, ConnectionError):
        try:
            ask = work.ask(stack)
        except SpeckitError as error:
            # Reports the problem as the answer to the first question: the other end only listens after it has asked.
            end.recv()
            end.send([*error.problems])
            return
        while True:
            place, overrides, rows = end.recv()
            try:
                end.send(ask(place, overrides, rows))
            except SpeckitError as error:
                # An error of one setting leaves the process alive for the next one.
                end.send([*error.problems])
