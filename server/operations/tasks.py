"""Knowledge before and after tasks (features T16, T17 and T23)."""

from __future__ import annotations

from typing import Annotated, Any

from speckit_memory.errors.echo import plural
from speckit_memory.server.operations.fields import Flag, Gaps, Limit, Required, Score, Session
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

TaskFolder = Annotated[Required, Option("Folder of the task.", tool="specFolder", argument=True)]
TaskName = Annotated[Required, Option("Name of the task.", tool="taskId", argument=True)]
Knowledge = Annotated[Score, Option("Knowledge, 0 to 100.", tool="knowledgeScore")]
Uncertainty = Annotated[Score, Option("Uncertainty, 0 to 100.", tool="uncertaintyScore")]
Context = Annotated[Score, Option("Completeness of the context, 0 to 100.", tool="contextScore")]


class TaskPreflight(Parameters):
    folder: TaskFolder
    task: TaskName
    knowledge: Knowledge
    uncertainty: Uncertainty
    context: Context
    gaps: Annotated[Gaps, Option("A gap in knowledge.", tool="knowledgeGaps", command="--gap")] = []
    session: Session = ""


@operation(
    "daily",
    "task preflight",
    Tool("task_preflight", "Begin task", "Before a task: record how much you know and how unsure you are.", 1200),
)
def preflight(call: Call, params: TaskPreflight) -> View:
    """Record the state of knowledge before a task of a folder.

    Until the task is complete, a repetition replaces the earlier record; it keeps the earlier gaps and session if none
    are given.
    """
    from speckit_memory.server.views.rows.task_rows import task_row

    begun = call.memory(create=call.workspace is not None).learning.preflight(**dict(params))
    after = call.way("run `speckit-memory task postflight`", "call task_postflight with the same specFolder and taskId")
    return View(
        f"recorded before the task {begun.task} of {begun.folder}",
        {"specFolder": begun.folder, **task_row(begun)},
        hints=(f"when the task is done, {after}",),
    )


class TaskPostflight(Parameters):
    folder: TaskFolder
    task: TaskName
    knowledge: Knowledge
    uncertainty: Uncertainty
    context: Context
    gaps_closed: Annotated[Gaps, Option("A gap that is closed.", command="--closed")] = []
    new_gaps: Annotated[Gaps, Option("A new gap.", tool="newGapsDiscovered", command="--new-gap")] = []


@operation(
    "daily",
    "task postflight",
    Tool("task_postflight", "End task", "After a task: record the same scores; shows what was learned.", 1200),
)
def postflight(call: Call, params: TaskPostflight) -> View:
    """Complete the record of a task and show its learning index.

    The index is 0.4 of the knowledge gained, 0.35 of the uncertainty lost and 0.25 of the context gained.
    """
    from speckit_memory.server.views.rows.task_rows import changes, task_row

    done = call.memory().learning.postflight(**dict(params))
    row = task_row(done)
    return View(
        f"learning index {row['learning_index']:g} ({row['band']}) for the task {done.task} of {done.folder}",
        {"specFolder": done.folder, **row},
        facts=changes(row),
    )


class TaskListing(Parameters):
    folder: Annotated[Required, Option("Folder of the tasks.", tool="specFolder", argument=True)]
    session: Session = ""
    limit: Annotated[Limit, Option("Maximum number of tasks.")] = 10
    only_complete: Annotated[Flag, Option("Only tasks that are complete.", command="--complete")] = False
    summary: Annotated[
        Flag, Option("Means and trend.", tool="includeSummary", brief="Means and trend", command=None)
    ] = True


@operation(
    "daily",
    "task history",
    Tool("memory_get_learning_history", "Show learning", "Knowledge before and after tasks of a folder.", cached=True),
    reads=True,
)
def history(call: Call, params: TaskListing) -> View:
    """List tasks of a folder, the latest first, with means and trend over all of them."""
    from speckit_memory.server.views.rows.task_rows import summary_row, task_row

    found = call.memory().learning.history(
        params.folder, session=params.session, limit=params.limit, only_complete=params.only_complete
    )
    told: dict[str, Any] = {"summary": summary_row(found.summary)} if params.summary else {}
    tasks = [task_row(task) for task in found.tasks]
    return View(
        f"{plural(found.summary.tasks, 'task')} recorded, {found.summary.complete} complete",
        {"specFolder": params.folder, **told, "tasks": tasks},
        facts=told.get("summary", {}),
        rows="tasks",
        cells=_task_cells,
        heads=("task", "index", "band", "changes", "completed"),
    )


def _task_cells(row: Row) -> tuple[str, ...]:
    from speckit_memory.server.console.markdown import fields
    from speckit_memory.server.views.rows.task_rows import changes

    if "delta" not in row:
        return row["taskId"], "", "not complete", "", ""
    return row["taskId"], f"{row['learning_index']:g}", row["band"], fields(changes(row)), row["completed"][:10]
