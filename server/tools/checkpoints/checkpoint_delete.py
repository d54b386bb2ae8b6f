"""`checkpoint_delete`: delete a checkpoint (feature T15)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge
from speckit_memory.server.calls.parameters import CheckpointName
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 600


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def checkpoint_delete(
        name: CheckpointName,
        confirmName: Annotated[str, Field(max_length=100, description="The name again")],  # noqa: N803 -- parameter names of the specification
    ) -> Reply:
        """Remove a checkpoint for good."""
        if confirmName != name:
            raise SpeckitError(
                "E030",
                f"confirmName is '{abridge(confirmName)}' and name is '{name}': nothing was deleted",
                hint="A deleted checkpoint cannot be restored.",
                actions=("give the same name in both",),
            )
        gone = workspace.memory().checkpoints.delete(name)
        return Reply(f"{gone.name} was deleted", {"deleted": gone.name, "bytes": gone.bytes})

    return checkpoint_delete
