"""`memory_bulk_delete`: delete the memories of a tier (feature T11)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, Folder, Tier
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.tools.deleted_rows import deleted_reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 500


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_bulk_delete(
        tier: Tier,
        confirm: Flag = False,
        specFolder: Folder = "",  # noqa: N803 -- parameter names of the specification
        olderThanDays: Annotated[  # noqa: N803
            int | None, Field(strict=True, ge=1, le=100_000, description="Unchanged for this long")
        ] = None,
        skipCheckpoint: Flag = False,  # noqa: N803
        dryRun: Flag = False,  # noqa: N803
    ) -> Reply:
        """Delete a tier after a checkpoint; needs confirm. memory_delete can undo it.\f

        Args:
            tier: Tier whose memories are deleted.
            confirm: Whether the deletion is confirmed.
            specFolder: Folder that limits the call, with all below it; "" for the whole store.
            olderThanDays: Days for which the memories must be unchanged; None for any.
            skipCheckpoint: Whether no checkpoint is made first.
            dryRun: Whether the memories are only shown.
        """
        deleted = workspace.memory().deletions.delete_tier(
            tier,
            folder=specFolder,
            older_than_days=olderThanDays,
            confirm=confirm,
            skip_checkpoint=skipCheckpoint,
            dry_run=dryRun,
        )
        return deleted_reply(deleted, dryRun)

    return memory_bulk_delete
