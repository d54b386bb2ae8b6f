"""`task_preflight`: record the knowledge before a task (feature T16)."""

from collections.abc import Callable

from speckit_memory.server.calls.parameters import Gaps, Required, Score, SessionId
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1200


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def task_preflight(
        specFolder: Required,  # noqa: N803 -- parameter names of the specification
        taskId: Required,  # noqa: N803
        knowledgeScore: Score,  # noqa: N803
        uncertaintyScore: Score,  # noqa: N803
        contextScore: Score,  # noqa: N803
        knowledgeGaps: Gaps = [],  # noqa: B006, N803 -- the schema shows it
        sessionId: SessionId = "",  # noqa: N803
    ) -> Reply:
        """Before a task: record how much you know and how unsure you are.\f

        Args:
            specFolder: Folder of the task.
            taskId: Name of the task.
            knowledgeScore: Knowledge, 0 to 100.
            uncertaintyScore: Uncertainty, 0 to 100.
            contextScore: Completeness of the context, 0 to 100.
            knowledgeGaps: Gaps in knowledge.
            sessionId: Name of the session; "" for none.
        """
        from speckit_memory.server.views.rows.task_rows import scores

        begun = workspace.memory(create=True).learning.preflight(
            specFolder,
            taskId,
            knowledge=knowledgeScore,
            uncertainty=uncertaintyScore,
            context=contextScore,
            gaps=knowledgeGaps,
            session=sessionId,
        )
        return Reply(
            f"recorded before the task {begun.task} of {begun.folder}",
            {
                "specFolder": begun.folder,
                "taskId": begun.task,
                "phase": "preflight",
                "before": scores(begun.before),
                "knowledgeGaps": list(begun.gaps),
                "sessionId": begun.session,
            },
            hints=("when the task is done, call task_postflight with the same specFolder and taskId",),
        )

    return task_preflight
