"""The evaluation database: comparisons of pipelines, separate from the store (feature E1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from speckit_memory.config.workspace.store_address import address_at, principal_at, store_label
from speckit_memory.memory.store.evaluation import attribution, losses, observations, query_facts
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import (
    DroppedQueries,
    ExperimentRecord,
    Observation,
    PipelineRecord,
    PlacementChange,
    RecordedPair,
    ScoreSample,
    UsageSignal,
    UseRecord,
)
from speckit_memory.memory.store.evaluation.schema import EVALUATION
from speckit_memory.memory.store.evaluation.workspace import evaluation_at
from speckit_memory.memory.store.file.connection import Connection

T = TypeVar("T")
P = ParamSpec("P")
Transaction = Callable[[EvaluationFile], AbstractContextManager[Connection]]
Query = Callable[Concatenate[Connection, P], T]
Method = Callable[Concatenate["EvaluationDatabase", P], T]

BUSY_TIMEOUT_MS = 1_000
"""How long a write waits for other processes; each of their writes takes milliseconds."""


def evaluation_file(store: Path) -> Path:
    """Path of a store's evaluation database: `memory.evaluation.db` next to `memory.db`.

    That of a store in PostgreSQL is in its database, and the path is the store link. But what a principal asks is
    recorded in a separate file, next to its link.
    """
    if address_at(store) and not principal_at(store):
        return store
    return store.parent / f"{store.stem}.evaluation.db"


def evaluation_label(path: Path) -> str:
    """The evaluation database at a path, for messages: the schema in PostgreSQL, or the path."""
    return f"schema {EVALUATION.schema} of {store_label(path)}" if address_at(path) else str(path)


def _within(transaction: Transaction, query: Query[P, T]) -> Method[P, T]:
    """The method that runs a query within such a transaction, with the same further parameters."""

    @wraps(query)
    def method(self: EvaluationDatabase, /, *args: P.args, **named: P.kwargs) -> T:
        with transaction(self._file) as connection:
            return query(connection, *args, **named)

    return method


class EvaluationDatabase:
    """All records about answers and their evaluation. Safe for several threads and processes.

    Most methods are functions of the modules beside this one, in a transaction of their own. Times are epoch seconds;
    `since` None means all. Every method raises the errors of `open`, since the file may be deleted, replaced or damaged
    at any time. A deleted file is created again if `create` allowed that. Those of a workspace in PostgreSQL are shared
    by all who use the workspace.
    """

    def __init__(self, file: EvaluationFile) -> None:
        """Wraps a file; callers use `open`."""
        self._file = file
        self._in_log = False
        """Whether the log may still hold deleted data."""

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Self:
        """Opens the database in this file, or of the workspace of this store link, and migrates it; `create` allows a
        new one.

        Raises E010 (missing), E011 or E020 (not readable or writable), E014 (a folder), E022 (busy), E023 (a migration
        failed), E024 (of another program, or damaged) and E025 (newer than this version); for a store link those of
        `PostgresDatabase.open`.
        """
        file = evaluation_at(path, create=create, busy_timeout_ms=busy_timeout_ms)
        file.open()
        return cls(file)

    @property
    def path(self) -> Path:
        """The path of the file or of the store link."""
        return self._file.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. May be called again."""
        self._file.close()

    def record(
        self,
        seen: Iterable[Observation],
        dropped: Iterable[DroppedQueries] = (),
        *,
        uses: Iterable[UseRecord] = (),
        signs: Iterable[UsageSignal] = (),
        scorings: Iterable[ScoreSample] = (),
        pipelines: Iterable[PipelineRecord] = (),
        retreats: Iterable[PlacementChange] = (),
        are_similar: Callable[[str, str], bool] | None = None,
    ) -> None:
        """Stores records of all kinds in one transaction.

        Args:
            seen: Queries with their answers. A known query keeps its answer; new variants are added.
            dropped: Counts of queries that variants did not see.
            uses: Uses of memories.
            signs: Signs of use, each stored as a use of the answer that contained the memory, if any; see
                `attribution`.
            scorings: How answers got their scores.
            pipelines: Descriptions of pipelines.
            retreats: Variants that were moved or switched off.
            are_similar: Compares the texts of two queries; with it, queries that a later one rephrases are marked.
        """
        with self._file.writing() as connection:
            observations.put_pipelines(connection, pipelines)
            recorded = list(seen)
            for observation in recorded:
                observations.put_observation(connection, observation)
            if are_similar is not None:
                for observation in recorded:
                    attribution.mark_rephrased(connection, observation, are_similar)
            for count in dropped:
                losses.put_dropped(connection, count)
            for use in (*uses, *attribution.uses_of(connection, tuple(signs))):
                query_facts.put_use(connection, use)
            for scoring in scorings:
                query_facts.put_scoring(connection, scoring)
            for retreat in retreats:
                query_facts.put_retreat(connection, retreat)

    def pairs_of(self, experiment: ExperimentRecord, since: float | None = None) -> list[RecordedPair]:
        """The pairs of this experiment, by time; those of others are not read."""
        with self._file.reading() as connection:
            key = experiment.control.hash, experiment.variant.hash, experiment.mode, experiment.epoch
            return observations.pairs_of(connection, *key, since or 0.0)

    def prune(self, *, before: float, max_bytes: int, steps: int = 4, texts_before: float = 0.0) -> int:
        """Deletes old queries with their answers and texts, overwriting them in the file and its log.

        Decisions (evaluations, changes of flags, retreats, judgements) are kept and do not count against `max_bytes`.

        Args:
            before: Queries before this time are deleted, in epoch seconds.
            max_bytes: After that, the oldest queries are deleted until all fit in this size.
            steps: Maximum number of short transactions of up to 500 queries; the next call continues.
            texts_before: Texts of queries before this time are deleted, in epoch seconds.

        Returns:
            The number of queries deleted or stripped of their texts.
        """
        given_up = 0
        for _ in range(steps):
            with self._file.writing() as connection:
                count = losses.prune_before(connection, before)
                # Age first; only if nothing is too old does the size decide.
                if not count and self._file.used_bytes(connection) - losses.kept_bytes(connection) > max_bytes:
                    moment = losses.moment_of(connection)
                    count = losses.prune_before(connection, moment) if moment is not None else 0
                count += losses.forget_texts(connection, texts_before)
            given_up += count
            if not count:
                break
        if given_up:
            with self._file.writing() as connection:
                losses.give_back(connection)
        if given_up or self._in_log:
            # Deleted pages survive in the log until it is truncated; retried by the next call if a reader prevents it.
            self._in_log = not self._file.empty_log()
        return given_up

    # queries and their answers
    pairs = _within(EvaluationFile.reading, observations.pairs)
    experiments = _within(EvaluationFile.reading, observations.experiments)
    variants = _within(EvaluationFile.reading, observations.variants)
    pipelines = _within(EvaluationFile.reading, observations.pipelines)
    queries = _within(EvaluationFile.reading, observations.queries)
    served = _within(EvaluationFile.reading, observations.served_answers)
    latest_costs = _within(EvaluationFile.reading, observations.latest_costs)
    served_times = _within(EvaluationFile.reading, observations.served_times)
    tally = _within(EvaluationFile.reading, observations.tally)

    # replays
    begin = _within(EvaluationFile.writing, observations.begin)
    waiting = _within(EvaluationFile.reading, observations.waiting)
    observation = _within(EvaluationFile.reading, observations.observation)
    replayed = _within(EvaluationFile.writing, observations.put_replays)
    arm = _within(EvaluationFile.reading, observations.replay_counts)

    # uses
    brought = _within(EvaluationFile.reading, attribution.recently_served)
    uses = _within(EvaluationFile.reading, query_facts.uses)
    ignored = _within(EvaluationFile.reading, query_facts.ignored)
    selections = _within(EvaluationFile.reading, attribution.selections)
    scorings = _within(EvaluationFile.reading, query_facts.scorings)

    # judgements and evaluations
    judge = _within(EvaluationFile.writing, query_facts.put_judgements)
    take_back = _within(EvaluationFile.writing, query_facts.remove_judgement)
    judgements = _within(EvaluationFile.reading, query_facts.judgements)
    label = _within(EvaluationFile.writing, query_facts.put_labels)
    unlabel = _within(EvaluationFile.writing, query_facts.remove_label)
    labels = _within(EvaluationFile.reading, query_facts.labels)
    keep = _within(EvaluationFile.writing, query_facts.put_evaluation)
    evaluation = _within(EvaluationFile.reading, query_facts.evaluation)
    evaluations = _within(EvaluationFile.reading, query_facts.evaluations)
    measured = _within(EvaluationFile.reading, query_facts.measured_figures)
    metrics = _within(EvaluationFile.reading, query_facts.metrics)

    # decisions
    flag_changed = _within(EvaluationFile.writing, query_facts.put_flag_change)
    flag_changes = _within(EvaluationFile.reading, query_facts.flag_changes)
    retreats = _within(EvaluationFile.reading, query_facts.retreats)

    def used_bytes(self) -> int:
        """Size in bytes of all records."""
        with self._file.reading() as connection:
            return self._file.used_bytes(connection)

    # sizes
    kept_bytes = _within(EvaluationFile.reading, losses.kept_bytes)
    counts = _within(EvaluationFile.reading, losses.counts)


def read_if_there(store: Path, read: Callable[[EvaluationDatabase], T]) -> T | None:
    """The result of `read` on a store's evaluation database; None if there is none. Raises other errors of `open`."""
    database = open_if_there(evaluation_file(store))
    if database is None:
        return None
    with database:
        return read(database)


def open_if_there(path: Path) -> EvaluationDatabase | None:
    """The evaluation database at a path; None if there is none. Raises other errors of `open`."""
    file = evaluation_at(path, create=False, busy_timeout_ms=BUSY_TIMEOUT_MS)
    return EvaluationDatabase(file) if file.is_there() else None
