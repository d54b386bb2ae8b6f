"""`memory_delete`: delete a memory or a folder, or undo a deletion (feature T9)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.parameters import Flag, Folder, MemoryName, Name
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.tools.deleted_rows import deleted_reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 500


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_delete(
        id: MemoryName | None = None,  # noqa: A002 -- parameter names of the specification
        specFolder: Folder = "",  # noqa: N803
        confirm: Annotated[bool, Field(strict=True, description="For a folder, or a critical memory")] = False,
        dryRun: Flag = False,  # noqa: N803
        undo: Annotated[Name, Field(description="Name of the deletion to undo")] = "",
    ) -> Reply:
        """Delete a memory or folder; undo brings all back.\f

        Args:
            id: Id or key of the memory; None to delete a folder or to undo.
            specFolder: Folder whose memories are deleted, with all below it.
            confirm: Whether deleting a folder or a critical memory is confirmed.
            dryRun: Whether the memories are only shown.
            undo: Name of the deletion to undo; "" to delete.
        """
        _require_one(id is not None, bool(specFolder), bool(undo))
        if undo and (confirm or dryRun):
            raise SpeckitError("E030", "an 'undo' takes no other parameter", actions=("call again with 'undo' alone",))
        memory = workspace.memory()
        if undo:
            from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
            from speckit_memory.errors.echo import plural

            back = memory.deletions.undelete(undo)
            return Reply(
                f"{plural(len(back.memories), 'memory')} and {plural(len(back.files), 'file')} are back",
                {"undone": undo, "count": len(back.memories), "files": len(back.files), "pending": back.pending},
                hints=(f"lexical search finds all already; vectors follow: {WHO_EMBEDS}",) if back.pending else (),
            )
        if id is not None:
            from speckit_memory.server.console.arguments.memory_names import known_key

            deleted = memory.deletions.delete(known_key(memory, id), confirm=confirm, dry_run=dryRun)
        else:
            deleted = memory.deletions.delete_folder(specFolder, confirm=confirm, dry_run=dryRun)
        return deleted_reply(deleted, dryRun)

    return memory_delete


def _require_one(*given: bool) -> None:
    if sum(given) != 1:
        raise SpeckitError("E031", "memory_delete needs one of 'id', 'specFolder' and 'undo'")
