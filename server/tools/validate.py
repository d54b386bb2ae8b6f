"""`memory_validate`: record whether a memory was useful (feature T10)."""

from collections.abc import Callable

from speckit_memory.server.calls.parameters import Flag, MemoryName, SessionId
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 500


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_validate(
        id: MemoryName,  # noqa: A002 -- parameter names of the specification
        wasUseful: Flag,  # noqa: N803
        promote: Flag = False,
        sessionId: SessionId = "",  # noqa: N803
    ) -> Reply:
        """Tell whether a memory was useful; promote makes it critical.\f

        Args:
            id: Id or key of the memory.
            wasUseful: Whether the memory was useful.
            promote: Whether to make the memory critical, once readers trust it.
            sessionId: Name of the session; "" for none.
        """
        from speckit_memory.errors.echo import plural
        from speckit_memory.server.console.arguments.memory_names import of_known
        from speckit_memory.server.views.rows.rows import judgement
        from speckit_memory.server.views.unweighed_inputs import unweighed_judgement
        from speckit_memory.server.views.validation_text import TAKEN_BACK, validated_data

        memory = workspace.memory()
        judged = of_known(
            memory,
            id,
            lambda name: memory.learning.validate(name, useful=wasUseful, promote=promote, session=sessionId),
        )
        hint = "eligible for the tier critical: the next memory_validate may set promote"
        return Reply(
            f"{judged.key}: confidence {judged.confidence:g} after {plural(judged.validation_count, 'validation')}",
            validated_data(judged, sessionId),
            facts=fields({"tier": str(judged.tier), "promoted": judgement(judged).get("promoted")}),
            hints=(*[TAKEN_BACK] * judged.restored, *[hint] * judged.eligible, *unweighed_judgement(memory)),
        )

    return memory_validate
