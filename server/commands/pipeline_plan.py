"""`pipeline plan`: shows what a search would do."""

from __future__ import annotations

from dataclasses import asdict

import click

from speckit_memory.server.commands.search import MODES, existing_store
from speckit_memory.server.console.arguments.options import Common, query_argument, shared
from speckit_memory.server.console.output import counted, print_json, table, wrapped


@click.command("plan")
@query_argument
@click.option("--limit", type=int, default=10, show_default=True, help="Maximum number of results.")
@click.option("--folder", default="", help="Only this folder and its sub-folders.")
@click.option("--mode", type=click.Choice(MODES), default="auto", show_default=True, help="How thoroughly to search.")
@shared("db", "pipeline", "set", "json")
def command(common: Common, query: str, limit: int, folder: str, mode: str) -> None:
    """Show what a QUERY would do and how much it would read, without searching."""
    with existing_store(common) as memory:
        plan = memory.plan(query, limit=limit, folder=folder, mode=mode)  # type: ignore[arg-type]  # click.Choice admits modes only
    if common.as_json:
        print_json(plan.as_json())
        return
    intent = f"intent {plan.intent} ({plan.intent_confidence:.2f})"
    click.echo(wrapped(f"{intent} · {plan.complexity} query · budget {plan.budget_ms:g} ms"))
    for reason in plan.reasons:
        click.echo(wrapped(reason, "  "))
    for warning in plan.warnings:
        click.echo(wrapped(f"warning: {warning}", fg="yellow"))
    for variant in plan.variants[1:]:
        click.echo(wrapped(f"also searched: {variant}", "  "))
    click.echo("\nchannels")
    rows = [(c.id, c.use, f"up to {c.limit} hits" if c.asked else "not asked") for c in plan.channels]
    click.echo(table(rows, indent="  "))
    for stage, steps in plan.steps.items():
        click.echo(wrapped(f"{stage}: {' → '.join(steps) or '(nothing)'}", "  ", ""))
    for one in plan.beside:
        share = f", {one.sample:.0%} of queries" if one.sample < 1 else ""
        click.echo(wrapped(f"shadow: {one.name} ({one.mode}{share})"))
    click.echo("\nterms")
    click.echo(table([(term, f"in {counted(count, 'memory')}") for term, count in plan.terms], indent="  "))
    click.echo("\nwork")
    counts = asdict(plan.work).items()
    click.echo(table([(name.replace("_", " "), f"{n:,}") for name, n in counts], right=(1,), indent="  "))
