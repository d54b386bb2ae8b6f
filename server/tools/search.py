"""`memory_search`: search with every option (feature T2)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from speckit_memory.server.calls.parameters import (
    Anchors,
    ContextType,
    Dedup,
    Flag,
    Folder,
    Intent,
    Limit,
    SessionId,
    State,
    TierName,
    TokenBudget,
    Wish,
)
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm, rows_of
from speckit_memory.server.replies.envelope import Reply
from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 1500
USUAL_ROWS = 10
BY_KEY = frozenset({"key", "anchors", "fromLine", "sessionId", "tokenBudget", "bypassCache"})
"""The parameters with an effect on reading a single memory."""


def idle(values: Mapping[str, Any]) -> UnusedParameters | None:
    """The parameters without effect on reading a memory, or on searching."""
    if values["key"] != "":
        return UnusedParameters(values.keys() - BY_KEY, "one memory is read by its key")
    return UnusedParameters(("fromLine",), "no key is given")


def build(workspace: Workspace, form: AnswerForm = SHIPPED_FORM) -> Callable[..., Reply]:
    """Builds the tool for a workspace, with answers of the given form."""

    def memory_search(
        query: Annotated[
            str, Field(max_length=10_000, description='Words, identifiers, a question; "exact phrase", -without')
        ] = "",
        concepts: Annotated[
            list[Annotated[str, Field(max_length=2000)]],
            Field(max_length=5, description="2 to 5 ideas that must all apply"),
        ] = [],  # noqa: B006 -- never mutated; a default keeps the schema free of null
        specFolder: Folder = "",  # noqa: N803 -- parameter names of the specification
        limit: Limit | None = None,
        tier: TierName | None = None,
        contextType: ContextType | None = None,  # noqa: N803
        mode: Literal["auto", "deep"] = "auto",
        sessionId: SessionId = "",  # noqa: N803
        enableDedup: Dedup = True,  # noqa: N803
        anchors: Anchors = [],  # noqa: B006
        includeContent: Annotated[  # noqa: N803
            bool, Field(strict=True, description="Whole memories")
        ] = False,
        key: Annotated[
            Annotated[str, Field(max_length=500)] | int,
            Field(description="Read one by id or key, or its anchors"),
        ] = "",
        fromLine: Annotated[int, Field(strict=True, ge=1, le=10**9)] = 1,  # noqa: N803
        explain: Annotated[bool, Field(strict=True, description="Channels and score steps")] = False,
        whyNot: Annotated[  # noqa: N803
            str | int | None, Field(description="A memory not in the results")
        ] = None,
        tokenBudget: TokenBudget | None = None,  # noqa: N803
        deadlineMs: Annotated[  # noqa: N803
            float | None, Field(ge=0, description="Skip costly steps then; 0: never")
        ] = None,
        intent: Intent | None = None,
        autoDetectIntent: Flag = True,  # noqa: N803
        includeConstitutional: Wish = None,  # noqa: N803
        minState: State | None = None,  # noqa: N803
        applyStateLimits: Wish = None,  # noqa: N803
        onlyFitting: Flag = False,  # noqa: N803
        useDecay: Wish = None,  # noqa: N803
        includeContiguity: Wish = None,  # noqa: N803
        enableSessionBoost: Wish = None,  # noqa: N803
        enableCausalBoost: Wish = None,  # noqa: N803
        rerank: Wish = None,
        applyLengthPenalty: Wish = None,  # noqa: N803
        bypassCache: Flag = False,  # noqa: ARG001, N803 -- SpeckitTool reads it
    ) -> Reply:
        """Search memories: the best, with passage and why; or read one by key.\f

        Args:
            query: Words, identifiers or a question.
            concepts: Two to five ideas that must all apply, instead of a query.
            specFolder: Folder that limits the call, with all below it; "" for the whole store.
            limit: Maximum number of results; None for what the budget holds.
            tier: Tier of the results; None for any.
            contextType: Context type of the results; None for any.
            mode: How thoroughly to search.
            sessionId: Name of the session; "" for none.
            enableDedup: Whether texts that the session has are left out.
            anchors: ANCHOR ids of the only sections to send.
            includeContent: Whether whole memories are sent.
            key: Id or key of the one memory to read; "" to search.
            fromLine: With `key`: first line to read, from 1.
            explain: Whether channels and score steps are sent.
            whyNot: Memory whose absence is explained; None for none.
            tokenBudget: Tokens that the answer may take; None for the tool's own.
            deadlineMs: Milliseconds after which costly steps are skipped, 0 for never; None for the setting.
            intent: Intent of the query; None to detect it.
            autoDetectIntent: Whether the intent is detected if none is given.
            includeConstitutional: Whether constitutional memories are added; None for the pipeline's setting.
            minState: Lowest state of the results; None for any.
            applyStateLimits: Whether the number of results of each state is limited; None for the pipeline's setting.
            onlyFitting: Whether only results that fit the query are sent.
            useDecay: Whether scores decay with age; None for the pipeline's setting.
            includeContiguity: Whether neighbours in time are preferred; None for the pipeline's setting.
            enableSessionBoost: Whether memories that the session attends to are preferred; None for the pipeline's
                setting.
            enableCausalBoost: Whether linked memories are preferred; None for the pipeline's setting.
            rerank: Whether the reranker runs; None for the pipeline's setting.
            applyLengthPenalty: Whether long memories are penalised; None for the pipeline's setting.
            bypassCache: Whether the answer is computed anew; `SpeckitTool` reads it.
        """
        from speckit_memory.server.tools import content
        from speckit_memory.server.views.rows.row_text import SearchRows
        from speckit_memory.server.views.rows.rows import (
            budget_of,
            degraded_parts,
            describe_found,
            note_served,
            note_served_again,
            search_data,
            search_facts,
            search_hints,
            timings,
        )

        if key != "":
            from speckit_memory.server.calls.whole import BUDGET as BUDGET_OF_ONE
            from speckit_memory.server.calls.whole import read_whole

            # a key reads one memory: no search runs
            return read_whole(workspace, key, anchors, fromLine, sessionId, tokenBudget or BUDGET_OF_ONE)
        from speckit_memory.engine.answers.search_options import SearchOptions
        from speckit_memory.server.views.unweighed_inputs import unweighed_intent

        memory = workspace.memory()
        result = memory.search(
            query,
            limit=limit or form.rows or rows_of(tokenBudget, USUAL_ROWS),
            folder=specFolder,
            tier=tier or "",
            context_type=contextType or "",
            mode=mode,
            session=sessionId,
            concepts=concepts,
            anchors=anchors,
            dedup=enableDedup,
            intent=intent or (None if autoDetectIntent else ""),
            adjust=SearchOptions(
                session_boost=enableSessionBoost,
                causal_boost=enableCausalBoost,
                contiguity=includeContiguity,
                decay=useDecay,
                rerank=rerank,
                length_penalty=applyLengthPenalty,
                constitutional=includeConstitutional,
                state_limits=applyStateLimits,
                only_fitting=onlyFitting or None,
                min_state=minState or "",
            ),
            snippet=form.excerpt,
            content=includeContent,
            deadline_ms="setting" if deadlineMs is None else deadlineMs,
            query_id=logs.query_id(),
        )
        budget = tokenBudget or max(budget_of(result, BUDGET), content.BUDGET if includeContent else 0)
        data, rendered = search_data(result), SearchRows(form.why)
        if explain:
            for shown, row in zip(data["results"], result.results, strict=True):
                detail = row.as_json()
                shown |= {"channels": detail["channels"], "steps": detail["steps"]}
            data["timings_ms"] = timings(result)
        absent = None
        if whyNot is not None and whyNot != "":
            from speckit_memory.server.calls.missing import missing

            absent = missing(memory, result, whyNot, budget)
        return Reply(
            describe_found(result),
            data,
            (
                *search_hints(result),
                *(unweighed_intent(memory, intent) if intent else ()),
                *content.lengthen(data["results"], result.results, rendered, budget, workspace.count_tokens),
            ),
            degraded_parts(result),
            rows="results",
            facts=search_facts(result),
            aside=absent.told if absent else None,
            row_text=rendered.text,
            brief_text=None if explain else partial(rendered.text, brief=True),
            budget=budget,
            last=form.last,
            pipeline=result.pipeline.hash,
            after=partial(note_served, memory, result),
            again=None
            if sessionId or explain or (absent and absent.cut_short)
            else partial(note_served_again, memory, result.without_texts()),
        )

    return memory_search
