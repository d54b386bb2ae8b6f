"""What is known of pipelines side by side, in a file of its own beside the store (feature E1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation import bringing, kept, lost, observations
from speckit_memory.memory.store.evaluation import selections as selected
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import (
    Arm,
    Dropped,
    Experiment,
    FlagChange,
    Judgement,
    Measured,
    Mode,
    Observation,
    Pair,
    PipelineRecord,
    QueryRecord,
    Replay,
    Retreat,
    Scoring,
    Sign,
    Snapshot,
    StoredEvaluation,
    Tally,
    UseRecord,
)
from speckit_memory.memory.store.evaluation.selections import Selected

T = TypeVar("T")

BUSY_TIMEOUT_MS = 1_000
"""So long a write waits for other processes; each of them writes for milliseconds."""


def evaluation_file(store: Path) -> Path:
    """Where the evaluation database of a store is: `memory.evaluation.db` beside `memory.db`."""
    return store.parent / f"{store.stem}.evaluation.db"


class EvaluationDatabase:
    """Everything that is noted beside answers. Safe to be used by several threads and processes.

    Moments are epoch seconds; `since` None means all. Whatever is asked raises as `open` does: the file may be deleted,
    replaced or damaged at any time. A deleted one is made anew if it might be made at first.
    """

    def __init__(self, file: EvaluationFile) -> None:
        """`open` is the usual way."""
        self._file = file
        self._in_log = False
        """Whether the log may still hold what was given up."""

    @classmethod
    def open(cls, path: Path, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Self:
        """The database in this file, with its schema brought up to date; `create` allows a new one.

        Raises E010 (missing), E011 or E020 (not to be read or written), E014 (a folder), E022 (busy), E023 (a migration
        failed), E024 (of another program, or damaged) and E025 (newer than this version).
        """
        file = EvaluationFile(path, create=create, busy_timeout_ms=busy_timeout_ms)
        file.open()
        return cls(file)

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. It may be repeated."""
        self._file.close()

    def record(
        self,
        seen: Iterable[Observation],
        dropped: Iterable[Dropped] = (),
        *,
        uses: Iterable[UseRecord] = (),
        signs: Iterable[Sign] = (),
        scorings: Iterable[Scoring] = (),
        pipelines: Iterable[PipelineRecord] = (),
        retreats: Iterable[Retreat] = (),
    ) -> None:
        """All of it or nothing, in one transaction. A query that is known keeps its answer; new variants are added.

        A sign is noted as a use of the answer that had brought its memory, if there is one (see `bringing`).
        """
        with self._file.writing() as connection:
            observations.put_pipelines(connection, pipelines)
            for observation in seen:
                observations.put_observation(connection, observation)
            for count in dropped:
                lost.put_dropped(connection, count)
            for use in (*uses, *bringing.uses_of(connection, tuple(signs))):
                kept.put_use(connection, use)
            for scoring in scorings:
                kept.put_scoring(connection, scoring)
            for retreat in retreats:
                kept.put_retreat(connection, retreat)

    def pairs(self, *, since: float | None = None, experiment: str = "") -> list[Pair]:
        """Two answers to each query that a variant saw, by time; of one experiment by its id, or of all."""
        with self._file.reading() as connection:
            return observations.pairs(connection, since or 0.0, experiment)

    def pairs_of(self, experiment: Experiment, since: float | None = None) -> list[Pair]:
        """The pairs of this experiment, by time; no other is read."""
        with self._file.reading() as connection:
            key = experiment.control.hash, experiment.variant.hash, experiment.mode, experiment.epoch
            return observations.pairs_of(connection, *key, since or 0.0)

    def begin(self, arm: Arm, pipelines: Iterable[PipelineRecord]) -> None:
        """Notes the pipelines of an arm. What is known of others that answer like its own holds for it as well."""
        with self._file.writing() as connection:
            observations.put_pipelines(connection, pipelines)
            observations.carry_over(connection, arm)

    def waiting(self, arm: Arm) -> list[tuple[int, str]]:
        """The numbers and ids of the queries that can be replayed and that this arm has not answered."""
        with self._file.reading() as connection:
            return observations.waiting(connection, arm)

    def observation(self, number: int) -> Observation | None:
        """A query by its number, with the answer that was served; None once it is not kept any more."""
        with self._file.reading() as connection:
            return observations.observation(connection, number)

    def replayed(self, replays: Iterable[Replay]) -> None:
        """Keeps replays, in one transaction. What is known of a query and an arm stays."""
        with self._file.writing() as connection:
            for replay in replays:
                observations.put_replay(connection, replay)

    def arm(self, arm: Arm, ended: str) -> tuple[int, int, int]:
        """How many queries an arm was asked, on how many its variant failed, and on how many of these with a failure
        that begins with `ended`."""
        with self._file.reading() as connection:
            return observations.replayed(connection, arm, ended)

    def experiments(self, since: float | None = None, *, experiment: str = "") -> list[Experiment]:
        """Which pipelines stood side by side, the latest first; the one of this id alone, or all of them."""
        with self._file.reading() as connection:
            return observations.experiments(connection, since or 0.0, experiment)

    def variants(self) -> int:
        """How many pipelines were compared with another one."""
        with self._file.reading() as connection:
            return observations.variants(connection)

    def pipelines(self) -> dict[str, PipelineRecord]:
        """What is known of pipelines, by their hashes."""
        with self._file.reading() as connection:
            return observations.pipelines(connection)

    def selections(self, since: float, asked_since: float) -> list[Selected]:
        """What was used since a time, with the question whose answer had brought it, if its text is kept."""
        with self._file.reading() as connection:
            return selected.selections(connection, since, asked_since)

    def queries(self, since: float | None = None) -> list[QueryRecord]:
        """What was asked, by time."""
        with self._file.reading() as connection:
            return observations.queries(connection, since or 0.0)

    def served(self, since: float | None = None) -> list[Observation]:
        """What was asked and answered, by time, without variants."""
        with self._file.reading() as connection:
            return observations.served(connection, since or 0.0)

    def note_use(self, use: UseRecord) -> None:
        """Notes what a reader did with a memory of an answer; once per query, memory and use."""
        self.record((), uses=(use,))

    def brought(self, at: float) -> frozenset[int]:
        """The memories that answers have brought of late: whose use at this moment would be noted."""
        with self._file.reading() as connection:
            return bringing.brought(connection, at)

    def uses(self, since: float | None = None) -> list[UseRecord]:
        """What readers did, by time."""
        with self._file.reading() as connection:
            return kept.uses(connection, since or 0.0)

    def ignored(self, since: float | None = None) -> dict[str, tuple[int, ...]]:
        """Of each query of whose answer something was used, the memories that were not, best first."""
        with self._file.reading() as connection:
            used: dict[str, set[int]] = {}
            for use in kept.uses(connection, since or 0.0):
                used.setdefault(use.query, set()).add(use.memory)
            return {
                seen.query.id: tuple(memory for memory in seen.control.memories if memory not in used[seen.query.id])
                for seen in observations.served(connection, since or 0.0)
                if seen.query.id in used
            }

    def scorings(self, since: float | None = None) -> list[Scoring]:
        """How the answers of the sample got their scores, by time (feature E7)."""
        with self._file.reading() as connection:
            return kept.scorings(connection, since or 0.0)

    def judge(self, judgements: Iterable[Judgement]) -> None:
        """Keeps what is known of memories for queries, in place of what the same judges said before."""
        with self._file.writing() as connection:
            for judgement in judgements:
                kept.put_judgement(connection, judgement)

    def take_back(self, query: str, memory: int, by: str) -> None:
        """Forgets what a judge said of a memory for a query."""
        with self._file.writing() as connection:
            kept.remove_judgement(connection, query, memory, by)

    def label(self, name: str, grades: Mapping[str, float], by: str, at: float) -> None:
        """Keeps grades by pair in the judgement list of this name, in place of what the same judge said before."""
        with self._file.writing() as connection:
            for pair, grade in grades.items():
                kept.put_label(connection, name, pair, by, grade, at)

    def unlabel(self, name: str, pair: str, by: str) -> None:
        """Takes a judge's label of a pair out of a judgement list."""
        with self._file.writing() as connection:
            kept.remove_label(connection, name, pair, by)

    def labels(self, name: str) -> dict[str, float]:
        """The grades of a judgement list by pair."""
        with self._file.reading() as connection:
            return kept.labels(connection, name)

    def judgements(self, source: str = "") -> list[Judgement]:
        """What is known of memories for queries, by time; of one source, or of all."""
        with self._file.reading() as connection:
            return kept.judgements(connection, source)

    def keep(self, stored: StoredEvaluation, figures: Iterable[Snapshot] = ()) -> None:
        """Keeps a comparison with its figures."""
        with self._file.writing() as connection:
            kept.put_evaluation(connection, stored, tuple(figures))

    def evaluation(self, name: str) -> StoredEvaluation | None:
        """The latest comparison with this id."""
        with self._file.reading() as connection:
            return next(reversed(kept.evaluations(connection, name)), None) if name else None

    def evaluations(self) -> list[StoredEvaluation]:
        """All comparisons, by time."""
        with self._file.reading() as connection:
            return kept.evaluations(connection, "")

    def measured(self, metric: str, since: float | None = None) -> list[Measured]:
        """A metric over time, of every pipeline that was measured."""
        with self._file.reading() as connection:
            return kept.measured(connection, metric, since or 0.0)

    def metrics(self) -> list[str]:
        """The metrics that were measured, by name."""
        with self._file.reading() as connection:
            return kept.metrics(connection)

    def flag_changed(self, name: str, before: str, after: str, at: float, evidence: str) -> None:
        """Notes that a flag went from one state to another, and the id of what it was done for ("" for nothing)."""
        with self._file.writing() as connection:
            kept.put_flag_change(connection, FlagChange(name, before, after, at, evidence))

    def flag_changes(self, name: str = "") -> list[FlagChange]:
        """Changes of flags by time; of one, or of all."""
        with self._file.reading() as connection:
            return kept.flag_changes(connection, name)

    def retreat(self, control: str, variant: str, placement: str, reason: str, at: float) -> None:
        """Notes that a variant was moved off the path of requests, or switched off."""
        self.record((), retreats=(Retreat(control, variant, placement, reason, at),))

    def retreats(self) -> list[Retreat]:
        """Retreats by time."""
        with self._file.reading() as connection:
            return kept.retreats(connection)

    def latest_costs(self, control: str, variant: str, *, since: float, most: int) -> list[float]:
        """What the latest runs of a variant beside a control took (ms), for queries after `since`, the latest last.

        Those are looked for that are among the last 10 times `most` runs of the variant.
        """
        with self._file.reading() as connection:
            return observations.latest_costs(connection, control, variant, since, most)

    def served_times(self, pipeline: str, complexity: str, most: int) -> list[float]:
        """What the latest searches of a complexity took (ms) that a pipeline answered, at most so many."""
        with self._file.reading() as connection:
            return observations.served_times(connection, pipeline, complexity, most)

    def tally(self, control: str, variant: str, mode: Mode) -> Tally:
        """How many queries a variant saw beside a control and how many not, in all processes."""
        with self._file.reading() as connection:
            return observations.tally(connection, control, variant, mode)

    def prune(self, *, before: float, max_bytes: int, steps: int = 4, texts_before: float = 0.0) -> int:
        """Gives up what is older than `before`, then the oldest until queries and their answers fit in `max_bytes`, and
        the words of queries before `texts_before`; returns how many were given up or lost their words.

        A step is one short transaction over a few hundred queries; what `steps` of them leave over waits for the next
        call. What was decided (evaluations, changes of flags, retreats, judgements) stays, and takes no room from
        queries. What is given up is overwritten, in the file and in its log.
        """
        given_up = 0
        for _ in range(steps):
            with self._file.writing() as connection:
                count = lost.prune_before(connection, before)
                if not count and lost.bytes_to_give_up(connection) > max_bytes:
                    moment = lost.moment_of(connection)
                    count = lost.prune_before(connection, moment) if moment is not None else 0
                count += lost.forget_texts(connection, texts_before)
            given_up += count
            if not count:
                break
        if given_up:
            with self._file.writing() as connection:
                lost.give_back(connection)
        if given_up or self._in_log:
            self._in_log = not self._file.empty_log()
        return given_up

    def kept_bytes(self) -> int:
        """About what is taken by what is never given up."""
        with self._file.reading() as connection:
            return lost.kept_bytes(connection)

    def counts(self) -> dict[str, int]:
        """How many records there are of each kind."""
        with self._file.reading() as connection:
            return lost.counts(connection)


def read_if_there(store: Path, read: Callable[[EvaluationDatabase], T]) -> T | None:
    """What `read` finds in the evaluation database of a store; None where there is none. Raises as `open` does else."""
    try:
        with EvaluationDatabase.open(evaluation_file(store), create=False) as database:
            return read(database)
    except SpeckitError as error:
        if error.code != "E010":
            raise
        return None
