"""Self-assessments before and after tasks, one row per folder and task (feature M15)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows

Triple = tuple[int, int, int]
"""Knowledge, uncertainty and context, each from 0 to 100."""

_COLUMNS = (
    "folder, task, session, knowledge, uncertainty, context, gaps, began_at, "
    "knowledge_after, uncertainty_after, context_after, gaps_closed, new_gaps, completed_at"
)


class TaskRecord(NamedTuple):
    """A task of a folder. Times are epoch seconds; `after` and `completed_at` are None until it is complete."""

    folder: str
    task: str
    session: str
    before: Triple
    gaps: tuple[str, ...]
    began_at: float
    after: Triple | None = None
    gaps_closed: tuple[str, ...] = ()
    new_gaps: tuple[str, ...] = ()
    completed_at: float | None = None


def put_record(txn: Transaction, record: TaskRecord) -> None:
    """Stores a record, replacing that of the same folder and task."""
    after = record.after or (None, None, None)
    lists = [json.dumps(one, ensure_ascii=False) for one in (record.gaps, record.gaps_closed, record.new_gaps)]
    txn.connection.execute(
        f"INSERT OR REPLACE INTO task_records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.folder,
            record.task,
            record.session,
            *record.before,
            lists[0],
            record.began_at,
            *after,
            lists[1],
            lists[2],
            record.completed_at,
        ),
    )


def find(connection: Connection, folder: str, task: str) -> TaskRecord | None:
    """The record of a task of a folder; None if there is none."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM task_records WHERE folder = ? AND task = ?", (folder, task))
    return _record(found[0]) if found else None


def of_folder(connection: Connection, folder: str, session: str = "") -> list[TaskRecord]:
    """The records of a folder, of one session or of all (""), by the time of their last update."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM task_records WHERE folder = ?1 AND ?2 IN ('', session) "
        "ORDER BY coalesce(completed_at, began_at), task",
        (folder, session),
    )
    return [_record(row) for row in found]


def latest(connection: Connection, folder: str, session: str) -> TaskRecord | None:
    """The last updated record of a folder and its subfolders ("" for all folders), with records of this session first;
    None if there is none."""
    # with a slash at its end, `a` has `a/b` below it and not `ab`; substr, since a name may hold the signs of LIKE
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM task_records "
        "WHERE ?1 IN ('', folder) OR substr(folder, 1, length(?1) + 1) = ?1 || '/' "
        "ORDER BY (?2 <> '' AND session = ?2) DESC, coalesce(completed_at, began_at) DESC, folder, task LIMIT 1",
        (folder, session),
    )
    return _record(found[0]) if found else None


def _record(row: Sequence[Any]) -> TaskRecord:
    folder, task, session, knowledge, uncertainty, context, gaps, began, *then, closed, new, completed = row
    after = None if completed is None else (then[0], then[1], then[2])
    gaps, closed, new = (tuple(json.loads(text)) for text in (gaps, closed, new))
    return TaskRecord(
        folder, task, session, (knowledge, uncertainty, context), gaps, began, after, closed, new, completed
    )
