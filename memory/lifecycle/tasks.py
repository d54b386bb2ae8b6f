"""Recording what is known before and after a task, and telling what was learned (feature M15)."""

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
    learned,
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
    """A task of a folder, as its record tells it. Times are epoch seconds.

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
        """What was not known at the beginning and not found out, then what came up since."""
        return tuple(gap for gap in dict.fromkeys((*self.gaps, *self.new_gaps)) if gap not in self.gaps_closed)

    @property
    def learned(self) -> TaskLearning | None:
        """What the task has taught."""
        return None if self.after is None else learned(self.before, self.after)


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """Tasks of a folder, the latest first, and what all of them say, listed or not."""

    tasks: tuple[Task, ...]
    summary: LearningSummary


def preflight(database: Database, task: Task) -> Task:
    """Records what is known before a task. A repetition takes the place of the earlier one until the task is complete;
    of that it keeps the gaps and the session where it names none.

    Raises E030 to E032 for what cannot be recorded, with all that is wrong, and E084 for a task that is complete.
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
        task_records.put(txn, _row(task))
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
    """Completes a task at `now` (epoch seconds), or corrects what was recorded when it was completed.

    Raises E030 to E032 for what cannot be recorded, and E010 without a record of what was known before.
    """
    _require(_problems(folder, name, "", after, gapsClosed=gaps_closed, newGapsDiscovered=new_gaps))
    with database.write() as txn:
        found = task_records.find(txn.connection, folder, name)
        if found is None:
            known = [one.task for one in task_records.of_folder(txn.connection, folder) if one.after is None]
            raise SpeckitError(
                "E010",
                f"no task_preflight is recorded of the task '{name}' in '{folder}'",
                hint=f"Tasks of the folder that wait for one: {', '.join(known[-5:]) or 'none'}.",
                actions=(
                    "record task_preflight at the beginning of the next task",
                    "record `speckit-memory task preflight` at the beginning of the next task",
                ),
            )
        task = replace(
            _task(found), after=after, gaps_closed=tuple(gaps_closed), new_gaps=tuple(new_gaps), completed_at=now
        )
        task_records.put(txn, _row(task))
    return task


def history(
    database: Database, folder: str, *, session: str = "", limit: int = 10, only_complete: bool = False
) -> TaskHistory:
    """The latest tasks of a folder, of one session or of all (""), at most 100 of them. Raises E032."""
    if not 1 <= limit <= MOST_LISTED:
        raise SpeckitError("E032", f"'limit' is {limit}; it is from 1 to {MOST_LISTED}")
    tasks = [_task(record) for record in task_records.of_folder(database.reader(), folder, session)]
    listed = [task for task in tasks if task.learned is not None or not only_complete]
    told = [task.learned for task in tasks if task.learned is not None]
    return TaskHistory(tuple(listed[::-1][:limit]), summary(len(tasks), told))


def last(database: Database, folder: str = "", session: str = "") -> Task | None:
    """The task that was last begun or completed in a folder or below it, anywhere for "": of this session before any
    other, if it has one."""
    found = task_records.latest(database.reader(), folder, session)
    return None if found is None else _task(found)


def _problems(folder: str, task: str, session: str, scores: TaskScores, **lists: Sequence[str]) -> list[Problem]:
    problems = [
        Problem("E031", f"'{name}' is empty") for name, text in (("specFolder", folder), ("taskId", task)) if not text
    ]
    problems += [
        Problem("E032", f"'{name}' has {len(text):,} characters; at most {LONGEST_NAME} fit")
        for name, text in (("specFolder", folder), ("taskId", task), ("sessionId", session))
        if len(text) > LONGEST_NAME
    ]
    for name in ("knowledge", "uncertainty", "context"):
        score = getattr(scores, name)
        if type(score) is not int:
            problems.append(Problem("E030", f"'{name}Score' is no whole number; it is from {LEAST} to {MOST}"))
        elif not LEAST <= score <= MOST:
            problems.append(Problem("E032", f"'{name}Score' is {score}; it is from {LEAST} to {MOST}"))
    for name, texts in lists.items():
        if len(texts) > MOST_GAPS:
            problems.append(Problem("E032", f"'{name}' has {len(texts):,} entries; at most {MOST_GAPS} fit"))
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
