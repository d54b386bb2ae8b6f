"""`memory_get_learning_history`: knowledge before and after the tasks of a folder (feature T23)."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, Limit, Required, SessionId
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.envelope import Reply, nothing
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1000


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_get_learning_history(
        specFolder: Required,  # noqa: N803 -- parameter names of the specification
        sessionId: SessionId = "",  # noqa: N803
        limit: Limit = 10,
        onlyComplete: Flag = False,  # noqa: N803
        includeSummary: Annotated[bool, Field(strict=True, description="Means and trend")] = True,  # noqa: N803
    ) -> Reply:
        """Knowledge before and after tasks of a folder.\f

        Args:
            specFolder: Folder of the tasks.
            sessionId: Name of the session; "" for none.
            limit: Maximum number of tasks.
            onlyComplete: Whether only complete tasks are sent.
            includeSummary: Whether means and trend are sent.
        """
        from speckit_memory.errors.echo import plural
        from speckit_memory.server.views.rows.task_rows import summary_row, task_row

        found = workspace.memory().learning.history(
            specFolder, session=sessionId, limit=limit, only_complete=onlyComplete
        )
        told: dict[str, Any] = {"summary": summary_row(found.summary)} if includeSummary else {}
        return Reply(
            f"{plural(found.summary.tasks, 'task')} recorded, {found.summary.complete} complete",
            {**told, "tasks": [task_row(task) for task in found.tasks]},
            rows="tasks",
            facts=fields(told.get("summary", {})),
            again=nothing,
        )

    return memory_get_learning_history
