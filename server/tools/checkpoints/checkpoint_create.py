"""`checkpoint_create`: save the present state of the memories (feature T12)."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from speckit_memory.server.calls.parameters import CheckpointName, Folder
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.call_progress import Pages
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 600


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def checkpoint_create(
        name: CheckpointName,
        specFolder: Folder = "",  # noqa: N803 -- parameter names of the specification
        metadata: Annotated[dict[str, Any] | None, Field(description="Shown by checkpoint_list")] = None,
    ) -> Reply:
        """Save the state of all memories under a new name."""
        from speckit_memory.server.views.checkpoint_text import as_row, describe_checkpoint

        made = workspace.memory().checkpoints.create(
            name,
            folder=specFolder,
            metadata=metadata,
            progress=lambda done, total: workspace.on_progress(Pages(done, total)),
        )
        faults = made.checkpoint.faults
        return Reply(
            f"{name}: {describe_checkpoint(made.checkpoint)}",
            {"checkpoint": as_row(made.checkpoint), "dropped": list(made.dropped)},
            facts=fields({"dropped, above the limit": list(made.dropped)}),
            hints=(f"the store has faults, and so has the copy: {faults[0]}",) if faults else (),
        )

    return checkpoint_create
