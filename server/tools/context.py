"""`memory_context`: a search that chooses its mode (feature T1)."""

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Literal

from pydantic import Field

from speckit_memory.server.calls.context_mode import SETTINGS, choose
from speckit_memory.server.calls.parameters import Anchors, Dedup, Flag, Folder, Intent, SessionId, TokenBudget
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, rows_of
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 2000


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_context(
        input: Annotated[str, Field(max_length=10_000, description="The task or question at hand")],  # noqa: A002 -- parameter names of the specification
        mode: Annotated[
            Literal["auto", "quick", "deep", "focused", "resume"],
            Field(description="resume: where work stopped"),
        ] = "auto",
        specFolder: Folder = "",  # noqa: N803
        limit: Annotated[int | None, Field(strict=True, ge=1, le=100, description="Default: by mode")] = None,
        sessionId: SessionId = "",  # noqa: N803
        enableDedup: Dedup = True,  # noqa: N803
        anchors: Anchors = [],  # noqa: B006 -- never mutated; a default keeps the schema free of null
        includeContent: Annotated[  # noqa: N803
            bool, Field(strict=True, description="Whole memories")
        ] = False,
        intent: Intent | None = None,
        onlyFitting: Flag = False,  # noqa: N803
        tokenBudget: TokenBudget | None = None,  # noqa: N803
        tokenUsage: Annotated[  # noqa: N803
            float | None, Field(ge=0, le=1, description="Share of your context in use")
        ] = None,
    ) -> Reply:
        """Start here: the memories that matter for a task, sized to your context.\f

        Args:
            input: Task or question at hand.
            mode: How thoroughly to search, or `resume`.
            specFolder: Folder that limits the call, with all below it; "" for the whole store.
            limit: Maximum number of results; None for that of the mode.
            sessionId: Name of the session; "" for none.
            enableDedup: Whether texts that the session has are left out.
            anchors: ANCHOR ids of the only sections to send.
            includeContent: Whether whole memories are sent.
            intent: Intent of the query; None to detect it.
            onlyFitting: Whether only results that fit the query are sent.
            tokenBudget: Tokens that the answer may take; None for the tool's own.
            tokenUsage: Share of the caller's context in use, 0 to 1; None if unknown.
        """
        from speckit_memory.engine.answers.search_options import SearchOptions
        from speckit_memory.server.tools import content
        from speckit_memory.server.views.rows.row_text import SearchRows
        from speckit_memory.server.views.rows.rows import (
            attended_rows,
            attended_text,
            degraded_parts,
            describe_found,
            note_served,
            note_served_again,
            search_data,
            search_facts,
            search_hints,
        )
        from speckit_memory.server.views.rows.task_rows import resumed_task, resumed_text

        memory = workspace.memory()
        plan = cache(lambda: memory.explain.plan(input, folder=specFolder, token_usage=tokenUsage))
        # the pipeline decides when a context is too full (feature C17): its step 'pressure' only acts in mode auto
        planned = plan().mode if mode == "auto" and tokenUsage is not None else mode
        pressed = planned != mode
        if mode != "auto":
            chosen, why = mode, "requested"
        elif planned != "auto":
            chosen, why = planned, f"the context is {tokenUsage:.0%} full"
        else:
            chosen, why = choose(input, lambda: intent or plan().intent)
        costs = SETTINGS[chosen]
        budget = tokenBudget or costs.budget
        result = memory.search(
            input,
            limit=limit or rows_of(tokenBudget, costs.limit),
            folder=specFolder,
            mode="auto" if pressed else chosen,
            session=sessionId,
            anchors=anchors,
            dedup=enableDedup,
            intent=intent,
            token_usage=tokenUsage,
            adjust=SearchOptions(only_fitting=onlyFitting or None),
            snippet=SHIPPED_FORM.excerpt,
            content=includeContent and not pressed,
            query_id=logs.query_id(),
        )
        data, rendered = search_data(result), SearchRows()
        hints = search_hints(result)
        resumed = result.pipeline.name == "resume"
        none = resumed and bool(result.why_nothing)
        alone = resumed and all("sections" in row.notes for row in result.results)
        task = memory.learning.last_task(specFolder, sessionId) if resumed else None
        if none:
            hints = tuple(hint for hint in hints if hint != result.why_nothing)
        elif alone and mode == "auto":
            hints = (*hints, "mode=focused searches for the words instead")
        if not pressed:  # a nearly full context only gets excerpts
            hints += content.lengthen(data["results"], result.results, rendered, budget, workspace.count_tokens)
        about = "" if none else search_facts(result, why if mode == "auto" else "")
        facts = [about, resumed_text(task), attended_text(result)]
        return Reply(
            result.why_nothing if none else f"{describe_found(result)}, {chosen} mode",
            {"mode": chosen, "mode_reason": why, **resumed_task(task), **attended_rows(result), **data},
            hints,
            degraded_parts(result),
            rows="results",
            whole_texts=alone,
            facts="\n".join(filter(None, facts)),
            row_text=rendered.text,
            brief_text=partial(rendered.text, brief=True),
            pipeline=result.pipeline.hash,
            after=partial(note_served, memory, result),
            again=None if sessionId else partial(note_served_again, memory, result.without_texts()),
            budget=budget,
            last=SHIPPED_FORM.last,
        )

    return memory_context
