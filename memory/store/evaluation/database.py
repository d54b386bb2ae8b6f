"""The evaluation database: comparisons of pipelines, in a separate file next to the store (feature E1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation import attribution, losses, observations, query_facts, rephrasing
from speckit_memory.memory.store.evaluation import selections as selected
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import (
    Arm,
    DroppedQueries,
    EvaluationFigure,
    ExperimentRecord,
    FlagChange,
    Mode,
    Observation,
    PipelineRecord,
    PlacementChange,
    QueryJudgement,
    QueryRecord,
    RecordedPair,
    Replay,
    ScoreSample,
    StoredEvaluation,
    StoredFigure,
    UsageSignal,
    UseRecord,
    VariantTally,
)
from speckit_memory.memory.store.evaluation.selections import SelectionEvent

T = TypeVar("T")

BUSY_TIMEOUT_MS = 1_000
"""How long a write waits for other processes; each of their writes takes milliseconds."""


def evaluation_file(store: Path) -> Path:
    """Path of a store's evaluation database: `memory.evaluation.db` next to `memory.db`."""
    return store.parent / f"{store.stem}.evaluation.db"


class EvaluationDatabase:
    """All records about answers and their evaluation. Safe for several threads and processes.

    Times are epoch seconds; `since` None means all. Every method raises the errors of `open`, since the file may be
    deleted, replaced or damaged at any time. A deleted file is created again if `create` allowed that.
    """

    def __init__(self, file: EvaluationFile) -> None:
        """Wraps a file; callers use `open`."""
        self._file = file
        self._in_log = False
        """Whether the log may still hold deleted data."""

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Self:
        """Opens the database in this file and migrates it; `create` allows a new file.

        Raises E010 (missing), E011 or E020 (not readable or writable), E014 (a folder), E022 (busy), E023 (a migration
        failed), E024 (of another program, or damaged) and E025 (newer than this version).
        """
        file = EvaluationFile(path, create=create, busy_timeout_ms=busy_timeout_ms)
        file.open()
        return cls(file)

    @property
    def path(self) -> Path:
        """The path of the file."""
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
                    rephrasing.mark_rephrased(connection, observation, are_similar)
            for count in dropped:
                losses.put_dropped(connection, count)
            for use in (*uses, *attribution.uses_of(connection, tuple(signs))):
                query_facts.put_use(connection, use)
            for scoring in scorings:
                query_facts.put_scoring(connection, scoring)
            for retreat in retreats:
                query_facts.put_retreat(connection, retreat)

    def pairs(self, *, since: float | None = None, experiment: str = "") -> list[RecordedPair]:
        """Pairs of answers to the queries that variants saw, by time; of the experiment with this id, or all ("")."""
        with self._file.reading() as connection:
            return observations.pairs(connection, since or 0.0, experiment)

    def pairs_of(self, experiment: ExperimentRecord, since: float | None = None) -> list[RecordedPair]:
        """The pairs of this experiment, by time; those of others are not read."""
        with self._file.reading() as connection:
            key = experiment.control.hash, experiment.variant.hash, experiment.mode, experiment.epoch
            return observations.pairs_of(connection, *key, since or 0.0)

    def begin(self, arm: Arm, pipelines: Iterable[PipelineRecord]) -> None:
        """Stores the pipelines of an arm, and copies replays of pipelines that answer alike to it."""
        with self._file.writing() as connection:
            observations.put_pipelines(connection, pipelines)
            observations.carry_over(connection, arm)

    def waiting(self, arm: Arm) -> list[tuple[int, str]]:
        """Numbers and ids of the queries that can be replayed and have no replay for this arm."""
        with self._file.reading() as connection:
            return observations.waiting(connection, arm)

    def observation(self, number: int) -> Observation | None:
        """The query with this number and its served answer; None once it has been deleted."""
        with self._file.reading() as connection:
            return observations.observation(connection, number)

    def replayed(self, replays: Iterable[Replay]) -> None:
        """Stores replays in one transaction. An existing replay of the same query and arm is kept."""
        with self._file.writing() as connection:
            for replay in replays:
                observations.put_replay(connection, replay)

    def arm(self, arm: Arm, ended: str) -> tuple[int, int, int]:
        """Number of queries replayed for an arm, of those on which its variant failed, and of those whose failure
        starts with `ended`."""
        with self._file.reading() as connection:
            return observations.replay_counts(connection, arm, ended)

    def experiments(self, since: float | None = None, *, experiment: str = "") -> list[ExperimentRecord]:
        """Experiments, latest first: the one with this id, or all ("")."""
        with self._file.reading() as connection:
            return observations.experiments(connection, since or 0.0, experiment)

    def variants(self) -> int:
        """Number of variants that were compared with a control."""
        with self._file.reading() as connection:
            return observations.variants(connection)

    def pipelines(self) -> dict[str, PipelineRecord]:
        """Descriptions of pipelines, by hash."""
        with self._file.reading() as connection:
            return observations.pipelines(connection)

    def selections(self, since: float, asked_since: float) -> list[SelectionEvent]:
        """Uses since `since` with the question, asked since `asked_since`, whose answer contained the memory. Only
        questions with stored text are returned."""
        with self._file.reading() as connection:
            return selected.selections(connection, since, asked_since)

    def queries(self, since: float | None = None) -> list[QueryRecord]:
        """Queries, by time."""
        with self._file.reading() as connection:
            return observations.queries(connection, since or 0.0)

    def served(self, since: float | None = None) -> list[Observation]:
        """Queries with their served answers, by time, without variants."""
        with self._file.reading() as connection:
            return observations.served_answers(connection, since or 0.0)

    def note_use(self, use: UseRecord) -> None:
        """Stores a use of a memory of an answer; once per query, memory and use."""
        self.record((), uses=(use,))

    def brought(self, at: float) -> frozenset[int]:
        """Ids of the memories in recent answers, whose use at the time `at` would be recorded."""
        with self._file.reading() as connection:
            return attribution.recently_served(connection, at)

    def uses(self, since: float | None = None) -> list[UseRecord]:
        """Uses of memories, by time."""
        with self._file.reading() as connection:
            return query_facts.uses(connection, since or 0.0)

    def ignored(self, since: float | None = None) -> dict[str, tuple[int, ...]]:
        """For each query whose answer was used, the memories of the answer that were not, best first."""
        with self._file.reading() as connection:
            used: dict[str, set[int]] = {}
            for use in query_facts.uses(connection, since or 0.0):
                used.setdefault(use.query, set()).add(use.memory)
            return {
                seen.query.id: tuple(memory for memory in seen.control.memories if memory not in used[seen.query.id])
                for seen in observations.served_answers(connection, since or 0.0)
                if seen.query.id in used
            }

    def scorings(self, since: float | None = None) -> list[ScoreSample]:
        """How sampled answers got their scores, by time (feature E7)."""
        with self._file.reading() as connection:
            return query_facts.scorings(connection, since or 0.0)

    def judge(self, judgements: Iterable[QueryJudgement]) -> None:
        """Stores judgements, each replacing an earlier one of the same query, memory, source and judge."""
        with self._file.writing() as connection:
            for judgement in judgements:
                query_facts.put_judgement(connection, judgement)

    def take_back(self, query: str, memory: int, by: str) -> None:
        """Deletes a judge's judgement of a memory for a query."""
        with self._file.writing() as connection:
            query_facts.remove_judgement(connection, query, memory, by)

    def label(self, name: str, grades: Mapping[str, float], by: str, at: float) -> None:
        """Stores labels in a judgement list, replacing earlier labels of the same pairs by this judge.

        Args:
            name: Name of the list.
            grades: Grade by pair.
            by: The judge.
            at: The time, in epoch seconds.
        """
        with self._file.writing() as connection:
            for pair, grade in grades.items():
                query_facts.put_label(connection, name, pair, by, grade, at)

    def unlabel(self, name: str, pair: str, by: str) -> None:
        """Deletes a judge's label of a pair from a judgement list."""
        with self._file.writing() as connection:
            query_facts.remove_label(connection, name, pair, by)

    def labels(self, name: str) -> dict[str, float]:
        """The grades of a judgement list, by pair."""
        with self._file.reading() as connection:
            return query_facts.labels(connection, name)

    def judgements(self, source: str = "") -> list[QueryJudgement]:
        """Judgements of memories for queries, by time; of one source, or of all ("")."""
        with self._file.reading() as connection:
            return query_facts.judgements(connection, source)

    def keep(self, stored: StoredEvaluation, figures: Iterable[EvaluationFigure] = ()) -> None:
        """Stores a comparison with its figures."""
        with self._file.writing() as connection:
            query_facts.put_evaluation(connection, stored, tuple(figures))

    def evaluation(self, name: str) -> StoredEvaluation | None:
        """The latest comparison with this id."""
        with self._file.reading() as connection:
            return next(reversed(query_facts.evaluations(connection, name)), None) if name else None

    def evaluations(self) -> list[StoredEvaluation]:
        """All comparisons, by time."""
        with self._file.reading() as connection:
            return query_facts.evaluations(connection, "")

    def measured(self, metric: str, since: float | None = None) -> list[StoredFigure]:
        """Values of a metric over time, for all measured pipelines."""
        with self._file.reading() as connection:
            return query_facts.measured_figures(connection, metric, since or 0.0)

    def metrics(self) -> list[str]:
        """Names of the measured metrics, in order."""
        with self._file.reading() as connection:
            return query_facts.metrics(connection)

    def flag_changed(self, name: str, before: str, after: str, at: float, evidence: str) -> None:
        """Records a change of a flag.

        Args:
            name: Name of the flag.
            before: The state before.
            after: The state after.
            at: The time, in epoch seconds.
            evidence: Id of the experiment or evaluation that was the reason; "" for none.
        """
        with self._file.writing() as connection:
            query_facts.put_flag_change(connection, FlagChange(name, before, after, at, evidence))

    def flag_changes(self, name: str = "") -> list[FlagChange]:
        """Changes of flags, by time: of one, or of all ("")."""
        with self._file.reading() as connection:
            return query_facts.flag_changes(connection, name)

    def retreat(self, control: str, variant: str, placement: str, reason: str, at: float) -> None:
        """Records that a variant was moved off the request path, or switched off.

        Args:
            control: Hash of the control pipeline.
            variant: Hash of the variant.
            placement: The new placement; "off" when switched off.
            reason: The reason, without quoted content.
            at: The time, in epoch seconds.
        """
        self.record((), retreats=(PlacementChange(control, variant, placement, reason, at),))

    def retreats(self) -> list[PlacementChange]:
        """Retreats, by time."""
        with self._file.reading() as connection:
            return query_facts.retreats(connection)

    def latest_costs(self, control: str, variant: str, *, since: float, most: int) -> list[float]:
        """Times of the latest runs of a variant next to a control.

        Args:
            control: Hash of the control pipeline.
            variant: Hash of the variant.
            since: Only queries after this time, in epoch seconds.
            most: Maximum number of runs, found among the variant's last 10 × `most` runs.

        Returns:
            Milliseconds, the latest run last.
        """
        with self._file.reading() as connection:
            return observations.latest_costs(connection, control, variant, since, most)

    def served_times(self, pipeline: str, complexity: str, most: int) -> list[float]:
        """Times (ms) of the latest `most` searches of a complexity that a pipeline answered, latest first."""
        with self._file.reading() as connection:
            return observations.served_times(connection, pipeline, complexity, most)

    def tally(self, control: str, variant: str, mode: Mode) -> VariantTally:
        """Numbers of queries that a variant saw and did not see next to a control, over all processes."""
        with self._file.reading() as connection:
            return observations.tally(connection, control, variant, mode)

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
                if not count and losses.bytes_to_give_up(connection) > max_bytes:
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

    def kept_bytes(self) -> int:
        """Approximate size in bytes of the records that are never deleted."""
        with self._file.reading() as connection:
            return losses.kept_bytes(connection)

    def counts(self) -> dict[str, int]:
        """Number of records of each kind."""
        with self._file.reading() as connection:
            return losses.counts(connection)


def read_if_there(store: Path, read: Callable[[EvaluationDatabase], T]) -> T | None:
    """The result of `read` on a store's evaluation database; None if there is none. Raises other errors of `open`."""
    try:
        with EvaluationDatabase.open(evaluation_file(store), create=False) as database:
            return read(database)
    except SpeckitError as error:
        if error.code != "E010":
            raise
        return None
