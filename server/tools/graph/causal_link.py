"""`memory_causal_link`: link two memories (feature T19)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.calls.parameters import MemoryName
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.views.links.relations import Relation
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1200


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_causal_link(
        sourceId: MemoryName,  # noqa: N803 -- parameter names of the specification
        targetId: MemoryName,  # noqa: N803
        relation: Relation,
        strength: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None,
        evidence: Annotated[str, Field(max_length=2000)] = "",
    ) -> Reply:
        """Link two memories, or change their link.\f

        Args:
            sourceId: Id or key of the memory that the link begins at.
            targetId: Id or key of the memory that the link ends at.
            relation: Relation of the link.
            strength: Confidence in the link, 0 to 1; None for 1, or what an existing link has.
            evidence: Reason for the link.
        """
        from speckit_memory.server.console.arguments.memory_names import known_key
        from speckit_memory.server.views.links.links_text import edge_text, place_text

        memory = workspace.memory()
        edge = memory.graph.link(
            known_key(memory, sourceId), relation, known_key(memory, targetId), strength=strength, evidence=evidence
        )
        return Reply(edge_text(edge), {"link": edge.as_json()}, hints=(place_text(edge),))

    return memory_causal_link
