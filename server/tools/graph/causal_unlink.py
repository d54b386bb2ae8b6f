"""`memory_causal_unlink`: remove a link (feature T21)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1200


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_causal_unlink(
        edgeId: Annotated[int, Field(strict=True, ge=1, le=2**63 - 1)],  # noqa: N803 -- names of the specification
    ) -> Reply:
        """Remove a causal link by the id that memory_drift_why shows."""
        from speckit_memory.server.views.links.links_text import edge_text

        removed, declared = workspace.memory().graph.unlink(edgeId)
        hint = f"a document still declares it: {edge_text(declared)}" if declared else ""
        return Reply(
            f"removed {edge_text(removed)}",
            {"removed": removed.as_json(), "declared": declared.as_json() if declared else None},
            hints=(hint,) if hint else (),
        )

    return memory_causal_unlink
