"""`memory_context`: one call that picks how to look (feature T1)."""

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Literal

from pydantic import Field

from speckit_memory.server import logs
from speckit_memory.server.context_mode import SETTINGS, choose
from speckit_memory.server.envelope import Reply
from speckit_memory.server.tools.parameters import Anchors, Dedup, Folder, SessionId
from speckit_memory.server.workspace import Workspace

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
        enableDedup: Dedup = True,  # noqa: N803
        anchors: Anchors = [],  # noqa: B006 -- never mutated; a default keeps the schema free of null
        includeContent: Annotated[  # noqa: N803
            bool, Field(strict=True, description="Whole memories instead of excerpts, unless your context is full")
        ] = False,
        tokenUsage: Annotated[  # noqa: N803
            float | None, Field(ge=0, le=1, description="Share of your context in use; a full one gets shorter answers")
        ] = None,
    ) -> Reply:
        """Start here: get the memories that matter for a task, sized to your remaining context."""
        from speckit_memory.server.tools import content
        from speckit_memory.server.tools.row_text import search_row_text
        from speckit_memory.server.tools.rows import (
            EXCERPT,
            attended,
            attended_text,
            degraded,
            found,
            note_served,
            search_data,
            search_facts,
            search_hints,
        )

        memory = workspace.memory()
        plan = cache(lambda: memory.plan(input, folder=specFolder, token_usage=tokenUsage))
        # how full is too full is the pipeline's to say (feature C17): its step 'pressure' acts in mode auto alone
        planned = plan().mode if mode == "auto" and tokenUsage is not None else mode
        pressed = planned != mode
        if mode != "auto":
            chosen, why = mode, "asked for"
        elif planned != "auto":
            chosen, why = planned, f"the context is {tokenUsage:.0%} full"
        else:
            chosen, why = choose(input, lambda: plan().intent)
        costs = SETTINGS[chosen]
        result = memory.search(
            input,
            limit=limit or costs.limit,
            folder=specFolder,
            mode="auto" if pressed else chosen,
            session=sessionId,
            anchors=anchors,
            dedup=enableDedup,
            token_usage=tokenUsage,
            snippet=EXCERPT,
            content=includeContent and not pressed,
            query_id=logs.query_id(),
        )
        data = search_data(result)
        hints = search_hints(result)
        resumed = result.pipeline.name == "resume"
        if resumed and mode == "auto":
            hints = (*hints, "mode=focused searches for the words instead")
        hints += content.put_whole(data["results"], result.results, costs.budget, workspace.count_tokens)
        return Reply(
            f"{found(result)}, {chosen} mode",
            {"mode": chosen, "mode_reason": why, **attended(result), **data},
            hints,
            degraded(result),
            rows="results",
            whole_texts=resumed,
            facts="\n".join(filter(None, [search_facts(result, why if mode == "auto" else ""), attended_text(result)])),
            row_text=search_row_text,
            after=partial(note_served, memory, result),
            budget=costs.budget,
        )

    return memory_context
