"""The tools that search: `memory_search` with every option, `memory_context` with its own mode (features T1 and T2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.logging import logs
from speckit_memory.server.operations.fields import (
    ID_OR_KEY,
    ContextType,
    Flag,
    Folder,
    Intent,
    Limit,
    Name,
    State,
    TierName,
)
from speckit_memory.server.operations.operation import OPERATIONS, Call, Option, Parameters, Tool, View, operation
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm, rows_of

if TYPE_CHECKING:
    from speckit_memory.server.workspace.workspace import Workspace

USUAL_ROWS = 10
BY_KEY = frozenset({"key", "anchors", "fromLine", "sessionId", "tokenBudget", "bypassCache"})
"""The parameters with an effect on reading a single memory."""

SearchFolder = Annotated[Folder, Option("Only this folder and its sub-folders.", tool="specFolder")]
SearchSession = Annotated[Name, Option("Name of the session the query belongs to.", tool="sessionId")]
Dedup = Annotated[
    Flag,
    Option("Whether texts that the session has are left out.", tool="enableDedup", brief="false: send repeats"),
]
Sections = Annotated[
    list[Name], Field(max_length=20), Option("ANCHOR ids of the only sections to send.", brief="Only these sections")
]
Content = Annotated[Flag, Option("Whether whole memories are sent.", tool="includeContent", brief="Whole memories")]
GivenIntent = Annotated[Intent | None, Option("Intent of the query; None to detect it.")]
OnlyFitting = Annotated[Flag, Option("Show the results that fit the query, or none.")]
Mode = Annotated[
    Literal["auto", "quick", "deep", "focused", "resume"],
    Option("How thoroughly to search, or `resume`.", brief="resume: where work stopped"),
]
WhyNot = Annotated[
    str | int | None,
    Option(
        "Explain why this memory is not a result, and what would make it one.",
        brief="A memory not in the results",
        metavar=ID_OR_KEY,
    ),
]
Deadline = Annotated[
    Annotated[float, Field(ge=0)] | None,
    Option(
        "Skip costly or optional steps after this time, not counting the opening of the store; 0 for never. Else "
        "SPECKIT_DEADLINE_MS, else 2000.",
        brief="Skip costly steps then; 0: never",
        metavar="MS",
    ),
]
TokenBudget = Annotated[
    Annotated[int, Field(strict=True, ge=200, le=100_000)] | None,
    Option("Tokens that the answer may take; None for the tool's own.", brief="Of the answer"),
]


Wish = Annotated[bool | None, Field(strict=True)]
"""True, false, or null for the pipeline's setting."""


class ContextRequest(Parameters):
    input: Annotated[
        str,
        Field(max_length=10_000),
        Option("Task or question at hand.", brief="The task or question at hand"),
    ]
    mode: Mode = "auto"
    folder: SearchFolder = ""
    limit: Annotated[
        Limit | None, Option("Maximum number of results; None for that of the mode.", brief="Default: by mode")
    ] = None
    session: SearchSession = ""
    dedup: Dedup = True
    anchors: Sections = []
    include_content: Content = False
    intent: GivenIntent = None
    only_fitting: OnlyFitting = False
    token_budget: TokenBudget = None
    token_usage: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None,
        Option("Share of the caller's context in use, 0 to 1; None if unknown.", brief="Share of your context in use"),
    ] = None


@operation(
    "daily",
    "",
    Tool(
        "memory_context",
        "Get context",
        "Start here: the memories that matter for a task, sized to your context.",
        2000,
        cached=True,
        core=True,
    ),
    one_door="the command is `search` with `--mode`",
    reads=True,
)
def memory_context(call: Call, params: ContextRequest) -> View:
    """Search in the mode that fits the task and the caller's context."""
    from speckit_memory.engine.answers.search_options import SearchOptions
    from speckit_memory.server.calls import content
    from speckit_memory.server.calls.context_mode import SETTINGS, choose
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

    assert call.workspace is not None  # there is no command
    memory, mode, usage = call.memory(), params.mode, params.token_usage
    plan = cache(lambda: memory.explain.plan(params.input, folder=params.folder, token_usage=usage))
    # the pipeline decides when a context is too full (feature C17): its step 'pressure' only acts in mode auto
    planned = plan().mode if mode == "auto" and usage is not None else mode
    pressed = planned != mode
    if mode != "auto":
        chosen, why = mode, "requested"
    elif planned != "auto":
        chosen, why = planned, f"the context is {usage:.0%} full"
    else:
        chosen, why = choose(params.input, lambda: params.intent or plan().intent)
    costs = SETTINGS[chosen]
    budget = params.token_budget or costs.budget
    result = memory.search(
        params.input,
        limit=params.limit or rows_of(params.token_budget, costs.limit),
        folder=params.folder,
        mode="auto" if pressed else chosen,
        session=params.session,
        anchors=params.anchors,
        dedup=params.dedup,
        intent=params.intent,
        token_usage=usage,
        adjust=SearchOptions(only_fitting=params.only_fitting or None),
        snippet=SHIPPED_FORM.excerpt,
        content=params.include_content and not pressed,
        query_id=logs.query_id(),
    )
    data, rendered = search_data(result), SearchRows()
    hints = search_hints(result)
    resumed = result.pipeline.name == "resume"
    none = resumed and bool(result.why_nothing)
    alone = resumed and all("sections" in row.notes for row in result.results)
    task = memory.learning.last_task(params.folder, params.session) if resumed else None
    if none:
        hints = tuple(hint for hint in hints if hint != result.why_nothing)
    elif alone and mode == "auto":
        hints = (*hints, "mode=focused searches for the words instead")
    if not pressed:  # a nearly full context only gets excerpts
        hints += content.lengthen(data["results"], result.results, rendered, budget, call.workspace.count_tokens)
    about = "" if none else search_facts(result, why if mode == "auto" else "")
    facts = [about, resumed_text(task), attended_text(result)]
    return View(
        result.why_nothing if none else f"{describe_found(result)}, {chosen} mode",
        {"mode": chosen, "mode_reason": why, **resumed_task(task), **attended_rows(result), **data},
        rows="results",
        hints=hints,
        after=partial(note_served, memory, result),
        reply={
            "degraded": degraded_parts(result),
            "whole_texts": alone,
            "facts": "\n".join(filter(None, facts)),
            "row_text": rendered.text,
            "brief_text": partial(rendered.text, brief=True),
            "budget": budget,
            "last": SHIPPED_FORM.last,
            "pipeline": result.pipeline.hash,
            "again": None if params.session else partial(note_served_again, memory, result.without_texts()),
        },
    )


class ToolSearch(Parameters):
    """The parameters of `memory_search`, by the names of `SearchRequest` and `SearchOptions` where these have them."""

    query: Annotated[
        str,
        Field(max_length=10_000),
        Option("Words, identifiers or a question.", brief='Words, identifiers, a question; "exact phrase", -without'),
    ] = ""
    concepts: Annotated[
        list[Annotated[str, Field(max_length=2000)]],
        Field(max_length=5),
        Option("Two to five ideas that must all apply, instead of a query.", brief="2 to 5 ideas that must all apply"),
    ] = []
    folder: SearchFolder = ""
    limit: Annotated[Limit | None, Option("Maximum number of results; None for what the budget holds.")] = None
    tier: Annotated[TierName | None, Option("Tier of the results; None for any.")] = None
    context_type: Annotated[ContextType | None, Option("Context type of the results; None for any.")] = None
    mode: Annotated[Literal["auto", "deep"], Option("How thoroughly to search.")] = "auto"
    session: SearchSession = ""
    dedup: Dedup = True
    anchors: Sections = []
    include_content: Content = False
    key: Annotated[
        Annotated[str, Field(max_length=500)] | int,
        Option('Id or key of the one memory to read; "" to search.', brief="Read one by id or key, or its anchors"),
    ] = ""
    from_line: Annotated[int, Field(strict=True, ge=1, le=10**9), Option("With `key`: first line to read, from 1.")] = 1
    explain: Annotated[Flag, Option("Whether channels and score steps are sent.", brief="Channels and score steps")] = (
        False
    )
    why_not: WhyNot = None
    token_budget: TokenBudget = None
    deadline_ms: Deadline = None
    intent: GivenIntent = None
    auto_detect_intent: Annotated[Flag, Option("Whether the intent is detected if none is given.", advanced=True)] = (
        True
    )
    constitutional: Annotated[
        Wish,
        Option(
            "Whether constitutional memories are added; None for the pipeline's setting.",
            "includeConstitutional",
            advanced=True,
        ),
    ] = None
    min_state: Annotated[State | None, Option("Lowest state of the results; None for any.", advanced=True)] = None
    state_limits: Annotated[
        Wish,
        Option(
            "Whether the number of results of each state is limited; None for the pipeline's setting.",
            "applyStateLimits",
            advanced=True,
        ),
    ] = None
    only_fitting: OnlyFitting = False
    decay: Annotated[
        Wish, Option("Whether scores decay with age; None for the pipeline's setting.", "useDecay", advanced=True)
    ] = None
    contiguity: Annotated[
        Wish,
        Option(
            "Whether neighbours in time are preferred; None for the pipeline's setting.",
            "includeContiguity",
            advanced=True,
        ),
    ] = None
    session_boost: Annotated[
        Wish,
        Option(
            "Whether memories that the session attends to are preferred; None for the pipeline's setting.",
            "enableSessionBoost",
            advanced=True,
        ),
    ] = None
    causal_boost: Annotated[
        Wish,
        Option(
            "Whether linked memories are preferred; None for the pipeline's setting.",
            "enableCausalBoost",
            advanced=True,
        ),
    ] = None
    rerank: Annotated[Wish, Option("Whether the reranker runs; None for the pipeline's setting.", advanced=True)] = None
    length_penalty: Annotated[
        Wish,
        Option(
            "Whether long memories are penalised; None for the pipeline's setting.", "applyLengthPenalty", advanced=True
        ),
    ] = None
    bypass_cache: Annotated[
        Flag, Option("Whether the answer is computed anew, past the cache of answers.", advanced=True)
    ] = False


def _unused(values: Mapping[str, Any]) -> UnusedParameters | None:
    """The parameters without effect on reading a memory, or on searching."""
    if values["key"] != "":
        return UnusedParameters(values.keys() - BY_KEY, "one memory is read by its key")
    return UnusedParameters(("fromLine",), "no key is given")


SEARCH = Tool(
    "memory_search",
    "Search memory",
    "Search memories: the best, with passage and why; or read one by key.",
    1500,
    cached=True,
    core=True,
    unused=_unused,
)


@operation("daily", "", SEARCH, one_door="the command is `search`, or `show` for a key", reads=True)
def memory_search(call: Call, params: ToolSearch) -> View:
    """Search the memories, or read one of them."""
    assert call.workspace is not None  # there is no command
    if params.key != "":
        from speckit_memory.server.operations.reading import BUDGET, read_whole

        # a key reads one memory: no search runs
        budget = params.token_budget or BUDGET
        return read_whole(call.workspace, params.key, params.anchors, params.from_line, params.session, budget)
    return search_view(call.workspace, params)


def search_view(workspace: Workspace, params: ToolSearch, form: AnswerForm = SHIPPED_FORM) -> View:
    """The answer of `memory_search` to a query, in this form."""
    from speckit_memory.engine.answers.search_options import SearchOptions
    from speckit_memory.server.calls import content
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
    from speckit_memory.server.views.unweighed_inputs import unweighed_intent

    memory, intent = workspace.memory(), params.intent
    given = {name: value for name, value in params if name in SearchOptions.__slots__ and value is not None}
    result = memory.search(
        params.query,
        limit=params.limit or form.rows or rows_of(params.token_budget, USUAL_ROWS),
        folder=params.folder,
        tier=params.tier or "",
        context_type=params.context_type or "",
        mode=params.mode,
        session=params.session,
        concepts=params.concepts,
        anchors=params.anchors,
        dedup=params.dedup,
        intent=intent or (None if params.auto_detect_intent else ""),
        adjust=SearchOptions(**given | {"only_fitting": params.only_fitting or None}),
        snippet=form.excerpt,
        content=params.include_content,
        deadline_ms="setting" if params.deadline_ms is None else params.deadline_ms,
        query_id=logs.query_id(),
    )
    usual = max(budget_of(result, SEARCH.budget), content.BUDGET if params.include_content else 0)
    budget = params.token_budget or usual
    data, rendered = search_data(result), SearchRows(form.why)
    if params.explain:
        for shown, row in zip(data["results"], result.results, strict=True):
            detail = row.as_json()
            shown |= {"channels": detail["channels"], "steps": detail["steps"]}
        data["timings_ms"] = timings(result)
    absent = None
    if params.why_not is not None and params.why_not != "":
        from speckit_memory.server.calls.missing import missing

        absent = missing(memory, result, params.why_not, budget, _tool_names())
    return View(
        describe_found(result),
        data,
        rows="results",
        hints=(
            *search_hints(result),
            *(unweighed_intent(memory, intent) if intent else ()),
            *content.lengthen(data["results"], result.results, rendered, budget, workspace.count_tokens),
        ),
        after=partial(note_served, memory, result),
        reply={
            "degraded": degraded_parts(result),
            "facts": search_facts(result),
            "aside": absent.told if absent else None,
            "row_text": rendered.text,
            "brief_text": None if params.explain else partial(rendered.text, brief=True),
            "budget": budget,
            "last": form.last,
            "pipeline": result.pipeline.hash,
            "again": None
            if params.session or params.explain or (absent and absent.cut_short)
            else partial(note_served_again, memory, result.without_texts()),
        },
    )


@cache
def _tool_names() -> dict[str, str]:
    """The parameters of the tool by the names of the engine's search parameters and options."""
    [declared] = [one for one in OPERATIONS if one.tool is SEARCH]
    return {field: name for name, (field, _, _) in declared.of_tool().items()}
