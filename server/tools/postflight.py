"""`task_postflight`: record the knowledge after a task, and what was learned (feature T17)."""

from collections.abc import Callable

from speckit_memory.server.calls.parameters import Gaps, Required, Score
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1200


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def task_postflight(
        specFolder: Required,  # noqa: N803 -- parameter names of the specification
        taskId: Required,  # noqa: N803
        knowledgeScore: Score,  # noqa: N803
        uncertaintyScore: Score,  # noqa: N803
        contextScore: Score,  # noqa: N803
        gapsClosed: Gaps = [],  # noqa: B006, N803 -- the schema shows it
        newGapsDiscovered: Gaps = [],  # noqa: B006, N803
    ) -> Reply:
        """After a task: record the same scores; shows what was learned.\f

        Args:
            specFolder: Folder of the task.
            taskId: Name of the task.
            knowledgeScore: Knowledge, 0 to 100.
            uncertaintyScore: Uncertainty, 0 to 100.
            contextScore: Completeness of the context, 0 to 100.
            gapsClosed: Gaps that are closed.
            newGapsDiscovered: New gaps.
        """
        from speckit_memory.server.views.rows.task_rows import changes, task_row

        done = workspace.memory().learning.postflight(
            specFolder,
            taskId,
            knowledge=knowledgeScore,
            uncertainty=uncertaintyScore,
            context=contextScore,
            gaps_closed=gapsClosed,
            new_gaps=newGapsDiscovered,
        )
        row = task_row(done)
        return Reply(
            f"learning index {row['learning_index']:g} ({row['band']}) for the task {done.task} of {done.folder}",
            {"specFolder": done.folder, **row},
            facts=fields(changes(row)),
        )

    return task_postflight
