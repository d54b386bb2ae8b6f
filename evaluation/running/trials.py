"""Measures many settings of one pipeline on datasets that are indexed once, in this process or in several."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from speckit_memory.config.workspace.settings import EVALUATION_VARIABLE
from speckit_memory.engine import components
from speckit_memory.engine.api.memory import Memory
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.evaluation.datasets.dataset import Dataset, DatasetQuery
from speckit_memory.evaluation.ground_truth.ground import GroundTruth
from speckit_memory.evaluation.ground_truth.judged_queries import JudgedQueries, JudgedQuery
from speckit_memory.evaluation.measuring.measure import OnMeasured, measure
from speckit_memory.evaluation.running.tunable import Setting
from speckit_memory.evaluation.statistics.comparison import Values
from speckit_memory.evaluation.statistics.folds import Rows
from speckit_memory.evaluation.statistics.metrics import METRICS, evaluate
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


START: Setting = {}
"""The pipeline as given."""


ENOUGH = 30
"""Minimum number of queries to judge a setting by."""


@dataclass(frozen=True, slots=True)
class OpenSet:
    """A dataset in an open store, with the judged queries and the unanswerable ones."""

    dataset: Dataset
    queries: tuple[DatasetQuery, ...]
    memory: Memory
    warnings: tuple[str, ...]
    unanswerable: tuple[DatasetQuery, ...] = ()

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.dataset.name

    @property
    def judged(self) -> list[JudgedQuery]:
        """The queries with their judgements."""
        return [(query, self.dataset.judgements[query.id]) for query in self.queries]


@contextmanager
def open_sets(
    sets: Sequence[tuple[GroundTruth, tuple[DatasetQuery, ...]]],
    pipeline: PipelineSource,
    *,
    environ: Mapping[str, str],
    progress: OnMeasured,
) -> Iterator[list[OpenSet]]:
    """Opens the store of each dataset, which is indexed once, into a separate store.

    Args:
        sets: The datasets with the queries to ask.
        pipeline: Path, preset or value.
        environ: Environment variables.
        progress: Called after every indexed document.
    """
    with ExitStack() as stack:
        opened = []
        for ground, queries in sets:
            store = stack.enter_context(ground.opened(ground.dataset, [pipeline], environ=environ, progress=progress))
            warnings = (*ground.warnings, *store.warnings)
            opened.append(OpenSet(ground.dataset, queries, store.memories[0], warnings, ground.unanswerable))
        yield opened


def work(sets: Sequence[OpenSet], pipeline: PipelineSource, environ: Mapping[str, str], now: float) -> EvaluationTask:
    """The data that another process needs to ask the queries of open datasets.

    Args:
        sets: The open datasets.
        pipeline: Path, preset or value.
        environ: Environment variables.
        now: Time of all queries in epoch seconds.
    """
    stores = tuple(
        (one.memory.session.settings.db, one.memory.session.settings.root, tuple(one.judged)) for one in sets
    )
    return EvaluationTask(stores, pipeline, {**environ, EVALUATION_VARIABLE: "off"}, now)


class Trials:
    """Measures settings, each query of each dataset at most once.

    `ask` asks the queries of `sets`; `written` turns a setting into overrides.
    """

    def __init__(
        self,
        sets: Sequence[OpenSet],
        ask: Ask,
        pipeline: PipelineSource,
        environ: Mapping[str, str],
        written: Callable[[Setting], Mapping[str, str]],
        *,
        now: float,
        seed: int,
    ) -> None:
        self._sets = sets
        self._ask = ask
        self._pipeline = pipeline
        self._environ = environ
        self._written = written
        self._now = now
        self._seed = seed
        # (dataset, setting) to metric to (n,) float64; NaN where a query has not been asked yet. Frozen sets ignore
        # order.
        self._known: dict[tuple[int, frozenset[tuple[str, float]]], Values] = {}
        rng = np.random.default_rng(seed)
        # drawn once, so that all settings begin with the same queries
        self._first = [_first(len(opened.queries), rng) for opened in sets]

    @property
    def measured(self) -> int:
        """The number of different settings measured on any dataset."""
        return len({setting for _, setting in self._known})

    def possible(self, setting: Setting) -> bool:
        """Whether the pipeline can be built with this setting: values that are valid alone may conflict."""
        return not pipelines.check(self._pipeline, self._environ, self._written(setting))

    def begun(self, place: int, setting: Setting) -> Values:
        """The metrics of a setting on a dataset, for at least a part of its queries; NaN for the others."""
        return self._values(place, setting, self._first[place])

    def values(self, place: int, setting: Setting) -> Values:
        """The metrics of a setting on a dataset, for each of its queries."""
        return self._values(place, setting, np.arange(len(self._sets[place].queries)))

    def judged(self, place: int, setting: Setting, rows: Rows) -> Values:
        """The metrics of a setting for the queries at these rows, through the production entry point."""
        opened = self._sets[place]
        asked = [opened.queries[row] for row in rows.tolist()]
        with opened.memory.using(self._pipeline, self._written(setting)) as memory:
            (answers,) = measure([memory], asked, now=self._now, seed=self._seed, progress=lambda _: None)
        judgements = [opened.dataset.judgements[query.id] for query in asked]
        return evaluate([one.ranked(judged) for one, judged in zip(answers, judgements, strict=True)], judgements)

    def _values(self, place: int, setting: Setting, wanted: Rows) -> Values:
        key = place, frozenset(setting.items())
        if key not in self._known:
            self._known[key] = {metric: np.full(len(self._sets[place].queries), np.nan) for metric in METRICS}
        known = self._known[key]
        # ask only the queries without a value
        # Any metric serves as the mark: all columns of a setting are filled together.
        missing = wanted[np.isnan(known[METRICS[0]][wanted])]
        if len(missing):
            for metric, column in self._ask(place, self._written(setting), missing).items():
                # Written in place: earlier callers hold the same arrays and see their NaN replaced.
                known[metric][missing] = column
        return known


def _first(queries: int, rng: np.random.Generator) -> Rows:
    """The queries on which a setting is tried first: a third of them, or all if that would be too few."""
    size = queries // 3 if queries // 3 >= ENOUGH else queries
    # A prefix of one permutation, sorted so that queries are asked in the order of the dataset.
    return np.sort(rng.permutation(queries)[:size])
