"""`search` and `pipeline plan`: run one query through the pipeline, or show what it would do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import click

from speckit_memory.config.files.paths import is_working_folder
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.errors.echo import plural
from speckit_memory.server.console import completion
from speckit_memory.server.console.output import beginning, block, print_json, table, wrap_text
from speckit_memory.server.operations.fields import RARE, Flag, Limit
from speckit_memory.server.operations.operation import Option, Parameters, View, operation
from speckit_memory.server.operations.search import Deadline, Mode, OnlyFitting, SearchFolder, SearchSession, WhyNot
from speckit_memory.server.views.absence_text import reason_of_absence
from speckit_memory.server.views.recombination import render_recombination

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import Explanation, ResultRow, SearchResult
    from speckit_memory.server.operations.command_line import CommandCall

SHOWN, IN_DOCUMENTS = 5, 10
"""Default limits: as many results as a reader, or a program, can use."""
WEAK = "Weak match: the answer may not be here."
USUAL_TIER = "normal"
SHOWN_FROM_MS = 1


Query = Annotated[str, Option("Words, identifiers or a question.", argument=True, joined=True)]


class CommandSearch(Parameters):
    query: Query
    limit: Annotated[Limit | None, Option(f"How many results, 1 to 100; else {SHOWN}, with --json {IN_DOCUMENTS}.")] = (
        None
    )
    folder: SearchFolder = ""
    mode: Mode = "auto"
    only_fitting: OnlyFitting = False
    session: SearchSession = ""
    deadline_ms: Deadline = None
    explain: Annotated[Flag, Option("Like --verbose, and how each step contributed to the score of every result.")] = (
        False
    )
    why_not: WhyNot = None
    shadows: Annotated[
        list[str],
        Option(
            "Also show the answer of another pipeline.",
            command="--shadow",
            metavar="FILE|PRESET",
            complete=completion.pipelines,
        ),
    ] = []


@operation(
    "daily",
    "search",
    one_door="the tools are memory_context, which chooses the mode, and memory_search, which has more options",
    shared=("db", "pipeline", "set", "json", "verbose"),
)
def search(call: CommandCall, params: CommandSearch) -> int:
    """Search the memories.

    "Words in quotes" must occur in this order in every result, a -word in none. A QUERY that begins with a dash comes
    after --. Shows rank, score, title and key of every result, and the beginning of its best passage.
    """
    from speckit_memory.engine.answers.search_options import SearchOptions

    as_json, why_not, shadows = call.common.as_json, params.why_not, params.shadows
    with ExitStack() as opened:
        memory = call.memory()
        if shadows:
            from speckit_memory.server.views import side_by_side  # loads code that a plain search does not need

            memory = opened.enter_context(memory.with_shadows(*shadows))
        opened.enter_context(SERVING.serving())  # work that follows an answer waits until it is printed
        result = memory.search(
            params.query,
            limit=params.limit or (IN_DOCUMENTS if as_json else SHOWN),
            folder=params.folder,
            mode=params.mode,
            session=params.session,
            deadline_ms="setting" if params.deadline_ms is None else params.deadline_ms,
            adjust=SearchOptions(only_fitting=params.only_fitting or None),
        )
        explained = [memory.explain.row(result, row.id) for row in result.results] if params.explain else []
        absent, change = (
            reason_of_absence(memory, result, why_not, again="search with --why-not") if why_not else ("", None)
        )
        result = result.warned(after=filter(None, [memory.feedback.delivered(result)]))
        task: dict[str, Any] = {}
        told = ""
        if result.pipeline.name == "resume":
            from speckit_memory.server.views.rows.task_rows import resumed_task, resumed_text

            last = memory.learning.last_task(params.folder, params.session)
            task, told = resumed_task(last), resumed_text(last)
        if as_json:
            document = result.as_json() | task
            if params.explain:
                document["explanations"] = [explanation.as_json() for explanation in explained]
            if why_not:
                document |= {"why_not": absent, "why_not_change": change.as_json() if change else None}
            if shadows:
                document["shadows"] = side_by_side.shadows_json(result)
            print_json(document)
            return 0
        show(result, explained, verbose=call.common.verbose)
        if told:
            click.echo("\n" + "\n".join(wrap_text(line, "  ") for line in told.splitlines()))
        if params.explain:
            show_work(result)
        if not is_working_folder(memory.session.settings.root):
            click.echo(wrap_text(f"workspace {memory.session.settings.root}", dim=True))
        if shadows:
            if not result.beside:
                click.echo("\n" + wrap_text("The handover pipeline answered; no shadow ran."))
            side_by_side.show_beside(result)
        if absent:
            click.echo("\n" + wrap_text(f"Why not {why_not}? {absent}"))
            if change:
                click.echo(wrap_text(change.sentence))
            if change and change.change and change.change.file:
                click.echo("\n" + block(change.change.file, "    "))
    return 0


def show(result: SearchResult, explained: Sequence[Explanation] = (), *, verbose: bool = False) -> None:
    """Prints the results, each with its explanation; degraded or doubtful parts are always reported.

    Args:
        result: The answer.
        explained: The explanations, aligned with the results.
        verbose: Shows whole passages and reasons.
    """
    from speckit_memory.pipeline.model.columns import GAP_WARNING

    verbose = verbose or bool(explained)
    warnings = [warning for warning in result.notes.warnings if verbose or not warning.startswith(GAP_WARNING)]
    if result.notes.evidence_gap and result.results:
        click.echo(wrap_text(WEAK, fg="yellow"))
    for rank, (row, explanation) in enumerate(zip_longest(result.results, explained), start=1):
        if row.repeated and not row.snippet:
            click.echo(wrap_text(f"already sent: {row.notes['already_sent']}", "    ", number(rank, row), dim=True))
        else:
            (show_row if verbose else show_briefly)(rank, row)
        if explanation:
            click.echo(wrap_text(f"{row.score:.4f}, step by step:", "    "))
            click.echo(render_recombination(explanation, "      "))
    if not result.results and not warnings:
        click.echo("No results.")
    if attended := result.notes.facts.get("attended"):
        keys = ", ".join(str(memory["key"]) for memory in attended)
        click.echo(wrap_text(f"this session attended to: {keys}", dim=True))
    if other := result.notes.facts.get("interleaved_with"):
        click.echo(wrap_text(f"mixed with the answer of the pipeline {other['name']} {other['hash']}", dim=True))
    for warning in warnings:
        # for a handover this sentence is the answer itself
        is_answer = warning == result.why_nothing and result.pipeline.name == "resume"
        click.echo(wrap_text(warning if is_answer else f"warning: {warning}", fg="yellow"))
    for part in result.notes.degraded:
        what = part.reason if part.steps else f"{part.part} did not take part ({part.reason})"
        more = "; --deadline-ms gives more time" if part.steps else ""
        text = f"degraded: {what}; instead: {part.instead}; loss of confidence: {part.confidence_impact}{more}"
        click.echo(wrap_text(text, fg="yellow"))
    from speckit_memory.pipeline.running.demands import describe_demands
    from speckit_memory.server.views.rows.rows import replica_text

    if marks := describe_demands(result.plan.required, result.plan.excluded):
        click.echo(wrap_text(f"asked for memories {marks}", dim=True))
    plan, count = result.plan, plural(len(result.results), "result")
    understood = f" · {plan.complexity} query, intent {plan.intent} ({plan.intent_confidence:.2f})" if verbose else ""
    late = f" (budget {plan.budget_ms:g} ms)" if result.outcome.trace.over_budget else ""
    opening = result.timings_ms.opening
    opened = f" after {opening:,.0f} ms of opening the store" if opening >= SHOWN_FROM_MS else ""
    replica = f" · {text}" if (text := replica_text(result)) else ""
    figures = (
        f"{count} in {result.timings_ms.total:.1f} ms{late}{opened}{understood}{replica} · "
        f"pipeline {result.pipeline.name} {result.pipeline.hash}"
    )
    click.echo(wrap_text(figures, dim=True))


def show_briefly(rank: int, row: ResultRow) -> None:
    """Prints one result in three lines: title, location, and the beginning of the passage."""
    show_title(rank, row)
    successors = [f"superseded by {successor['key']}" for successor in row.notes.get("superseded_by", ())]
    copies = [f"also at {copy['key']}" for copy in row.notes.get("also_at", ())]
    # a pasted answer is recognised by the id, see `memory.intake.self_quotes`
    about = [place(row), f"id {row.id}", *([row.tier] if row.tier != USUAL_TIER else []), *copies, *successors]
    style: dict[str, Any] = {"fg": "yellow"} if successors else {"dim": True}
    click.echo(wrap_text(" · ".join(about), "    ", **style))
    if row.snippet:
        click.echo(beginning(row.snippet, "    │ "))


def show_title(rank: int, row: ResultRow) -> None:
    """Prints the first line of a result."""
    click.echo(wrap_text(row.title, "    ", number(rank, row), bold=True))


def number(rank: int, row: ResultRow) -> str:
    """The beginning of a result's line: its rank and score."""
    return f"{rank:>2}. {click.style(f'{row.score:.4f}', fg='cyan')}  "


def place(row: ResultRow) -> str:
    """The location of a result's passage."""
    return f"{row.key}:{row.first_line}" if row.first_line else row.key


def show_row(rank: int, row: ResultRow) -> None:
    """Prints one result with its state, copies, successors, passage and reason."""
    show_title(rank, row)
    about = [place(row), f"id {row.id}", row.tier, row.state]
    click.echo(wrap_text(" · ".join(part for part in about if part), "    ", dim=True))
    if copies := row.notes.get("also_at"):
        click.echo(wrap_text(f"also at {', '.join(copy['key'] for copy in copies)}", "    ", dim=True))
    for successor in row.notes.get("superseded_by", ()):
        line = f"superseded by {successor['title']} ({successor['key']}, id {successor['id']})"
        click.echo(wrap_text(line, "    ", fg="yellow"))
        if words := successor.get("words"):
            click.echo(wrap_text(words, "      "))
    if row.heading and row.heading != row.title:
        click.echo(wrap_text(row.heading, "    "))
    if row.snippet:
        click.echo(block(row.snippet, "    │ "))
    click.echo(wrap_text(row.reason, "    ", dim=True))


def show_work(result: SearchResult) -> None:
    """Prints the causal coverage of the question, and the time of each step."""
    if coverage := result.plan.coverage:
        few = ", too few to rely on" if coverage.gap else ""
        connected = plural(coverage.connected, "memory")
        click.echo("\n" + wrap_text(f"Causal links connect {connected} with the question{few}."))
    rows = [("stage", "step", "ms", "rows in", "rows out", "outcome")]
    for record in result.timings_ms.steps:
        counts = (f"{record.ms:.3f}", str(record.rows_in), str(record.rows_out))
        rows.append((record.stage, record.step, *counts, record.outcome))
    click.echo("\nWhere the time went:")
    if result.notes.facts.get("words_from") == "file":
        text = "Words were looked up in the store itself, as no segment was in use: the same answer takes longer."
        click.echo(wrap_text(text, "  ", dim=True))
    if result.notes.facts.get("vectors_from") == "lists":
        text = "Similar passages were found by an approximate index; SPECKIT_VECTOR_INDEX=exact compares all."
        click.echo(wrap_text(text, "  ", dim=True))
    click.echo(table(rows, right=(2, 3, 4), indent="  ", headed=True))


class PlanQuery(Parameters):
    query: Query
    limit: Annotated[Limit, Option("Maximum number of results.")] = 10
    folder: SearchFolder = ""
    mode: Mode = "auto"


@operation("tuning", "pipeline plan", one_door=RARE, reads=True, shared=("db", "pipeline", "set", "json"))
def plan_query(call: CommandCall, params: PlanQuery) -> View:
    """Show what a QUERY would do and how much it would read, without searching."""
    plan = call.memory().explain.plan(params.query, limit=params.limit, folder=params.folder, mode=params.mode)
    intent = f"intent {plan.intent} ({plan.intent_confidence:.2f})"
    counts = asdict(plan.work).items()
    lines = [
        wrap_text(f"{intent} · {plan.complexity} query · budget {plan.budget_ms:g} ms"),
        *(wrap_text(reason, "  ") for reason in plan.reasons),
        *(wrap_text(f"warning: {warning}", fg="yellow") for warning in plan.warnings),
        *(wrap_text(f"also searched: {variant}", "  ") for variant in plan.variants[1:]),
        "\nchannels",
        table([(c.id, c.use, f"up to {c.limit} hits" if c.asked else "not asked") for c in plan.channels], indent="  "),
        *(wrap_text(f"{stage}: {' → '.join(steps) or '(nothing)'}", "  ", "") for stage, steps in plan.steps.items()),
        *(
            wrap_text(f"shadow: {one.name} ({one.mode}{f', {one.sample:.0%} of queries' if one.sample < 1 else ''})")
            for one in plan.beside
        ),
        "\nterms",
        table([(term, f"in {plural(count, 'memory')}") for term, count in plan.terms], indent="  "),
        "\nwork",
        table([(name.replace("_", " "), f"{n:,}") for name, n in counts], right=(1,), indent="  "),
    ]
    return View(data=plan.as_json(), text="\n".join(lines))
