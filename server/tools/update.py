"""`memory_update`: change the declarations in a memory's document (feature T8)."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, MemoryName, Phrases, Tier
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 500


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_update(
        id: MemoryName,  # noqa: A002 -- parameter names of the specification
        title: Annotated[str | None, Field(min_length=1, max_length=500)] = None,
        triggerPhrases: Phrases | None = None,  # noqa: N803
        importanceWeight: Annotated[float | None, Field(ge=0, le=1)] = None,  # noqa: N803
        importanceTier: Tier | None = None,  # noqa: N803
        allowPartialUpdate: Flag = False,  # noqa: N803
    ) -> Reply:
        """Change title, triggers, weight or tier of a memory, in its file.\f

        Args:
            id: Id or key of the memory.
            title: New title; None to keep it.
            triggerPhrases: New trigger phrases; None to keep them.
            importanceWeight: New importance weight, 0 to 1; None to keep it.
            importanceTier: New tier; None to keep it.
            allowPartialUpdate: Whether the change is kept even if the memory cannot be embedded again.
        """
        from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
        from speckit_memory.server.console.arguments.memory_names import known_key
        from speckit_memory.server.views.rows.rows import update_facts
        from speckit_memory.server.views.unweighed_inputs import unweighed_hint

        memory = workspace.memory()
        updated = memory.documents.update(
            known_key(memory, id),
            title=title,
            triggers=triggerPhrases,
            tier=importanceTier,
            weight=importanceWeight,
            allow_partial=allowPartialUpdate,
        )
        before, after = update_facts(updated.before), update_facts(updated.after)
        changed = {name: value for name, value in after.items() if value != before[name]}
        was = {name: before[name] for name in changed}
        key = updated.after.key
        return Reply(
            f"{key}: {', '.join(changed)} changed, in its file too"
            if changed
            else f"{key}: nothing changed, it has these values already",
            {"id": updated.after.id, "key": key, "changed": changed, "was": was, "embedding_pending": updated.pending},
            facts=fields(changed),
            hints=(
                *unweighed_hint(memory, changed, {before["importanceTier"], after["importanceTier"]}),
                *[f"lexical search finds it already; vectors follow: {WHO_EMBEDS}"] * updated.pending,
            ),
        )

    return memory_update
