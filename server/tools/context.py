"""`memory_context`: one call that picks how to look (feature T1)."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from server.context_mode import SETTINGS, choose, under_pressure
from server.envelope import Reply
from server.tools.parameters import Anchors, Folder, SessionId
from server.workspace import Workspace

BUDGET = 2000


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_context(
        input: Annotated[str, Field(max_length=10_000, description="The task or question at hand")],  # noqa: A002 -- parameter names of the specification
        mode: Annotated[
            Literal["auto", "quick", "deep", "focused", "resume"],
            Field(description="auto decides by input and tokenUsage; resume finds where work stopped"),
        ] = "auto",
        specFolder: Folder = "",  # noqa: N803
        limit: Annotated[int | None, Field(strict=True, ge=1, le=100, description="Default: by mode")] = None,
        sessionId: SessionId = "",  # noqa: N803
        anchors: Anchors = [],  # noqa: B006 -- never mutated; a default keeps the schema free of null
        includeContent: Annotated[  # noqa: N803
            bool, Field(strict=True, description="Whole passages instead of excerpts")
        ] = False,
        tokenUsage: Annotated[  # noqa: N803
            float | None, Field(ge=0, le=1, description="Share of your context in use; a full one gets shorter answers")
        ] = None,
    ) -> Reply:
        """Start here: get the memories that matter for a task, sized to your remaining context."""
        from server.output import counted
        from server.tools.rows import EXCERPT, WHOLE, note_served, search_data, search_hints

        memory = workspace.memory()
        if mode == "auto":
            chosen, why = choose(input, tokenUsage, lambda: memory.plan(input, folder=specFolder).intent)
        else:
            chosen, why = mode, "asked for"
        costs = SETTINGS[chosen]
        result = memory.search(
            input,
            limit=limit or costs.limit,
            folder=specFolder,
            # a full context is the pipeline's to answer (feature C17): its step 'pressure' acts in mode auto alone
            mode="auto" if mode == "auto" and under_pressure(tokenUsage) else chosen,
            session=sessionId,
            anchors=anchors,
            token_usage=tokenUsage,
            snippet=WHOLE if includeContent else EXCERPT,
        )
        return Reply(
            f"{counted(len(result.results), 'memory')} found, {chosen} mode",
            {"mode": chosen, "mode_reason": why, **search_data(result)},
            search_hints(result),
            tuple(result.notes["degraded"]),
            rows="results",
            after=partial(note_served, memory, result),
            budget=costs.budget,
        )

    return memory_context
