"""`match`: finds memories whose trigger phrases occur in a prompt (feature T3)."""

from __future__ import annotations

import click

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.rows.trigger_rows import related_rows, trigger_rows


@click.command("match")
@click.argument("prompt")
@click.option("--limit", type=click.IntRange(1, 50), default=3, show_default=True, help="Maximum number of memories.")
@click.option("--session", default="", help="Name of the session; memories that it attends to come first.")
@click.option(
    "--turn",
    type=click.IntRange(0, 2**31),
    help="The turn of the session's conversation; attention fades with each turn.",
)
@shared_options("db", "json")
def command(common: Common, prompt: str, limit: int, session: str, turn: int | None) -> None:
    """Find memories whose trigger phrases occur in a PROMPT, faster than a search.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        prompt: Text to look for trigger phrases in.
        limit: Maximum number of memories.
        session: Name of the session; "" for none.
        turn: Turn of the session's conversation; None if unknown.
    """
    if not prompt.strip():
        raise SpeckitError("E043", "the prompt is empty", actions=("give the text to look for trigger phrases in",))
    if turn is not None and not session:
        raise click.UsageError("--turn needs --session, the session whose conversation it counts")
    with existing_store(common) as memory:
        found = memory.triggers.match(prompt, limit=limit, session=session, turn=turn)
        rows = trigger_rows(found, text_field="text", state=True, attention=bool(session))
        related = related_rows(found)
        memory.triggers.matched(found, session=session, turn=turn)
        memory.feedback.write()
    if common.as_json:
        document = {"total": found.total, "attended": found.attended, "results": rows}
        print_json(document | ({"related": related} if session else {}))
        return
    for row in rows:
        title = f", {row['title']}" if row["title"] != row["key"] else ""
        click.echo(wrap_text(f"{row['key']}{title}", bold=True))
        learned = row.get("learned_phrases", 0)
        triggers = [*row["phrases"], *([plural(learned, "learned phrase")] if learned else [])]
        click.echo(wrap_text(f"triggered by: {', '.join(triggers)}", indent="  "))
        click.echo(wrap_text(row["text"], indent="  "))
    if related:
        click.echo(wrap_text(f"related: {', '.join(row['key'] for row in related)}"))
    click.echo(wrap_text(f"{plural(found.total, 'memory')} triggered", dim=True))
    if not rows:
        click.echo(wrap_text("no trigger phrase occurs in the prompt; `speckit-memory search` searches for its words"))
