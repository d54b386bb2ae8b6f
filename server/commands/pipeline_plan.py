"""`pipeline plan`: shows what a search would do."""

from __future__ import annotations

from dataclasses import asdict

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.search import MODES
from speckit_memory.server.console.arguments.options import Common, query_argument, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table, wrap_text


@click.command("plan")
@query_argument
@click.option("--limit", type=int, default=10, show_default=True, help="Maximum number of results.")
@click.option("--folder", default="", help="Only this folder and its sub-folders.")
@click.option("--mode", type=click.Choice(MODES), default="auto", show_default=True, help="How thoroughly to search.")
@shared_options("db", "pipeline", "set", "json")
def command(common: Common, query: str, limit: int, folder: str, mode: str) -> None:
    """Show what a QUERY would do and how much it would read, without searching."""
    with existing_store(common) as memory:
        plan = memory.explain.plan(query, limit=limit, folder=folder, mode=mode)  # type: ignore[arg-type]  # click.Choice admits modes only
    if common.as_json:
        print_json(plan.as_json())
        return
    intent = f"intent {plan.intent} ({plan.intent_confidence:.2f})"
    click.echo(wrap_text(f"{intent} · {plan.complexity} query · budget {plan.budget_ms:g} ms"))
    for reason in plan.reasons:
        click.echo(wrap_text(reason, "  "))
    for warning in plan.warnings:
        click.echo(wrap_text(f"warning: {warning}", fg="yellow"))
    for variant in plan.variants[1:]:
        click.echo(wrap_text(f"also searched: {variant}", "  "))
    click.echo("\nchannels")
    rows = [(c.id, c.use, f"up to {c.limit} hits" if c.asked else "not asked") for c in plan.channels]
    click.echo(table(rows, indent="  "))
    for stage, steps in plan.steps.items():
        click.echo(wrap_text(f"{stage}: {' → '.join(steps) or '(nothing)'}", "  ", ""))
    for one in plan.beside:
        share = f", {one.sample:.0%} of queries" if one.sample < 1 else ""
        click.echo(wrap_text(f"shadow: {one.name} ({one.mode}{share})"))
    click.echo("\nterms")
    click.echo(table([(term, f"in {plural(count, 'memory')}") for term, count in plan.terms], indent="  "))
    click.echo("\nwork")
    counts = asdict(plan.work).items()
    click.echo(table([(name.replace("_", " "), f"{n:,}") for name, n in counts], right=(1,), indent="  "))
