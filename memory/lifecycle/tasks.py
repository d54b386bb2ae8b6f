"""Records knowledge before and after a task, and reports what was learned (feature M15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.memory.lifecycle.epistemic import (
    LEAST,
    MOST,
    LearningSummary,
    TaskLearning,
    TaskScores,
    learning_index,
    summary,
)
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.sessions import task_records
from speckit_memory.memory.store.tables.sessions.task_records import TaskRecord

LONGEST_NAME = 200
LONGEST_GAP = 500
MOST_GAPS = 50
MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a folder and its record. Times are epoch seconds.

    `after` and `learned` are None until the task is complete.
    """

    folder: str
    task: str
    session: str
    before: TaskScores
    gaps: tuple[str, ...]
    began_at: float
    after: TaskScores | None = None
    gaps_closed: tuple[str, ...] = ()
    new_gaps: tuple[str, ...] = ()
    completed_at: float | None = None

    @property
    def open_questions(self) -> tuple[str, ...]:
        """Gaps known at the beginning and not closed, then those discovered since."""
        return tuple(gap for gap in dict.fromkeys((*self.gaps, *self.new_gaps)) if gap not in self.gaps_closed)

    @property
    def learned(self) -> TaskLearning | None:
        """What was learned from the task."""
        return None if self.after is None else learning_index(self.before, self.after)


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """Tasks of a folder, latest first, and a summary of all of them, including those not listed."""

    tasks: tuple[Task, ...]
    summary: LearningSummary


def preflight(database: Database, task: Task) -> Task:
    """Record the knowledge before a task. Repeating it replaces the earlier record until the task is complete; gaps and
    session are kept from that record if the new one has none.

    Raises E030 to E032 with all problems of invalid input, and E084 for a task that is already complete.
    """
    _require(_problems(task.folder, task.task, task.session, task.before, knowledgeGaps=task.gaps))
    with database.write() as txn:
        found = task_records.find(txn.connection, task.folder, task.task)
        if found is not None and found.after is not None:
            raise SpeckitError("E084", f"the task '{task.task}' in '{task.folder}' is complete; nothing was recorded")
        if found is not None:
            task = replace(
                task, began_at=found.began_at, gaps=task.gaps or found.gaps, session=task.session or found.session
            )
        task_records.put_record(txn, _row(task))
    return task


def postflight(
    database: Database,
    folder: str,
    name: str,
    after: TaskScores,
    *,
    gaps_closed: Sequence[str] = (),
    new_gaps: Sequence[str] = (),
    now: float,
) -> Task:
    """Complete a task, or correct the record of its completion.

    Args:
        database: The store.
        folder: Folder of the task, as in its preflight.
        name: Name of the task.
        after: Scores after the task.
        gaps_closed: Gaps that were closed.
        new_gaps: Gaps that were discovered.
        now: The present time in epoch seconds.

    Raises:
        SpeckitError: E030 to E032 for invalid input, E010 without a record of the preflight.
    """
    _require(_problems(folder, name, "", after, gapsClosed=gaps_closed, newGapsDiscovered=new_gaps))
    with database.write() as txn:
        found = task_records.find(txn.connection, folder, name)
        if found is None:
            known = [one.task for one in task_records.of_folder(txn.connection, folder) if one.after is None]
            raise SpeckitError(
                "E010",
                f"no task_preflight is recorded for the task '{name}' in '{folder}'",
                hint=f"Incomplete tasks of the folder: {', '.join(known[-5:]) or 'none'}.",
                actions=(
                    "record task_preflight at the beginning of the next task",
                    "record `speckit-memory task preflight` at the beginning of the next task",
                ),
            )
        task = replace(
            _task(found), after=after, gaps_closed=tuple(gaps_closed), new_gaps=tuple(new_gaps), completed_at=now
        )
        task_records.put_record(txn, _row(task))
    return task


def history(
    database: Database, folder: str, *, session: str = "", limit: int = 10, only_complete: bool = False
) -> TaskHistory:
    """The latest tasks of a folder.

    Args:
        database: The store.
        folder: The folder.
        session: Only tasks of this session; "" for all.
        limit: Tasks to list, 1 to 100.
        only_complete: Leave out tasks without a postflight.

    Raises:
        SpeckitError: E032 for a limit out of range.
    """
    if not 1 <= limit <= MOST_LISTED:
        raise SpeckitError("E032", f"'limit' is {limit}; it must be from 1 to {MOST_LISTED}")
    tasks = [_task(record) for record in task_records.of_folder(database.reader(), folder, session)]
    listed = [task for task in tasks if task.learned is not None or not only_complete]
    told = [task.learned for task in tasks if task.learned is not None]
    return TaskHistory(tuple(listed[::-1][:limit]), summary(len(tasks), told))


def last(database: Database, folder: str = "", session: str = "") -> Task | None:
    """The task last begun or completed in a folder or below it ("" for anywhere); one of this session comes before
    all others."""
    found = task_records.latest(database.reader(), folder, session)
    return None if found is None else _task(found)


def _problems(folder: str, task: str, session: str, scores: TaskScores, **lists: Sequence[str]) -> list[Problem]:
    problems = [
        Problem("E031", f"'{name}' is empty") for name, text in (("specFolder", folder), ("taskId", task)) if not text
    ]
    problems += [
        Problem("E032", f"'{name}' has {len(text):,} characters; at most {LONGEST_NAME} are allowed")
        for name, text in (("specFolder", folder), ("taskId", task), ("sessionId", session))
        if len(text) > LONGEST_NAME
    ]
    for name in ("knowledge", "uncertainty", "context"):
        score = getattr(scores, name)
        if type(score) is not int:
            problems.append(Problem("E030", f"'{name}Score' is not an integer; it must be from {LEAST} to {MOST}"))
        elif not LEAST <= score <= MOST:
            problems.append(Problem("E032", f"'{name}Score' is {score}; it must be from {LEAST} to {MOST}"))
    for name, texts in lists.items():
        if len(texts) > MOST_GAPS:
            problems.append(Problem("E032", f"'{name}' has {len(texts):,} entries; at most {MOST_GAPS} are allowed"))
        if any(len(text) > LONGEST_GAP for text in texts):
            problems.append(Problem("E032", f"an entry of '{name}' is longer than {LONGEST_GAP} characters"))
    return problems


def _require(problems: list[Problem]) -> None:
    if problems:
        raise SpeckitError.of(problems)


def _task(record: TaskRecord) -> Task:
    after = None if record.after is None else TaskScores(*record.after)
    return Task(**{**record._asdict(), "before": TaskScores(*record.before), "after": after})


def _row(task: Task) -> TaskRecord:
    def triple(scores: TaskScores) -> task_records.Triple:
        return scores.knowledge, scores.uncertainty, scores.context

    return TaskRecord(
        task.folder,
        task.task,
        task.session,
        triple(task.before),
        task.gaps,
        task.began_at,
        None if task.after is None else triple(task.after),
        task.gaps_closed,
        task.new_gaps,
        task.completed_at,
    )
