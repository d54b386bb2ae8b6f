"""`memory_validate`: tell whether a memory was useful (feature T10)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.envelope import Reply
from speckit_memory.server.markdown import fields
from speckit_memory.server.tools.parameters import Flag, MemoryId, SessionId
from speckit_memory.server.workspace import Workspace

BUDGET = 500


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_validate(
        id: MemoryId,  # noqa: A002 -- parameter names of the specification
        wasUseful: Flag,  # noqa: N803
        promote: Annotated[bool, Field(strict=True, description="Make it critical, once eligible")] = False,
        sessionId: SessionId = "",  # noqa: N803
    ) -> Reply:
        """Tell whether a memory was useful: its confidence rises or falls."""
        from speckit_memory.server.output import counted
        from speckit_memory.server.tools.rows import judgement

        judged = workspace.memory().validate(id, useful=wasUseful, promote=promote, session=sessionId)
        hint = "eligible for the tier critical: the next memory_validate may say promote"
        return Reply(
            f"{judged.key}: confidence {judged.confidence:g} after {counted(judged.validation_count, 'validation')}",
            {
                "id": judged.id,
                "key": judged.key,
                "tier": str(judged.tier),
                "eligible": judged.eligible,
                "kept_days": round(judged.kept_days, 1),
                **({"session": sessionId} if sessionId else {}),
                **judgement(judged),
            },
            facts=fields({"tier": str(judged.tier), "promoted": judgement(judged).get("promoted")}),
            hints=(hint,) if judged.eligible else (),
        )

    return memory_validate
