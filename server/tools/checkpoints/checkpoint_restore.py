"""`checkpoint_restore`: restore a checkpoint (feature T14)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.calls.parameters import CheckpointName
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.views.find_checkpoint import require_kept
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 600


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def checkpoint_restore(
        name: CheckpointName,
        clearExisting: Annotated[  # noqa: N803 -- parameter names of the specification
            bool,
            Field(
                strict=True,
                description="Delete memories it lacks, after a new checkpoint",
            ),
        ] = False,
    ) -> Reply:
        """Restore the memories of a checkpoint; later ones stay."""
        from speckit_memory.server.views.checkpoint_text import as_row, parted_counts, told_files, told_restore

        require_kept(workspace.config.db, name)
        done = workspace.memory(create=True).checkpoints.restore(name, replace=clearExisting)
        result = done.restored
        parted = parted_counts(done)
        files = told_files(done, 'memory_delete with undo="{}"', "memory_save with filePath")
        return Reply(
            told_restore(result),
            {
                "checkpoint": as_row(result.checkpoint),
                "returned": result.returned,
                "set_back": result.set_back,
                "removed": result.removed,
                "pending": result.pending,
                "before": done.before or None,
                **parted,
            },
            hints=(files,) if any(parted.values()) else (),
            facts=fields({"the state before is kept as": done.before, "files": "unchanged; searches use the store"}),
        )

    return checkpoint_restore
