"""`show`: prints the text of one memory, or one of its sections."""

from __future__ import annotations

import click

from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.archived_text import away_data, away_text
from speckit_memory.server.views.superseded_text import superseded_data, superseded_text


@click.command("show")
@click.argument("name", metavar="ID|KEY")
@click.option("--section", default="", metavar="NAME", help="Only this section, by ANCHOR id or heading.")
@click.option("--from-line", default=1, type=click.IntRange(1), metavar="N", help="Begin at this line of the document.")
@click.option("--session", default="", help="Name of the reading session, which then attends to the memory.")
@shared_options("db", "json")
def command(common: Common, name: str, section: str, from_line: int, session: str) -> None:
    """Print the stored text of a memory: all of it, or one section.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory.
        section: Section, by ANCHOR id or heading; "" for the whole memory.
        from_line: First line of the document to show, from 1.
        session: Name of the session; "" for none.
    """
    with existing_store(common) as memory:
        found = memory.documents.read(known_key(memory, name), section=section, first_line=from_line)
        memory.feedback.opened(found, session=session)
    record = found.memory
    if common.as_json:
        print_json(
            {
                "id": record.id,
                "key": record.key,
                "title": record.title,
                "tier": str(record.tier),
                "lines": [found.first_line, found.last_line],
                "sections": list(found.sections),
                **away_data(found.put_away),
                **superseded_data(found),
                "text": found.text,
            }
        )
        return
    if found.put_away:
        click.echo(wrap_text(away_text(found.put_away, "`unarchive`"), dim=True), err=True)
    if superseded := superseded_text(found):
        click.echo(wrap_text(superseded, fg="yellow"), err=True)
    about = f"{record.key}:{found.first_line}-{found.last_line} (id {record.id}, {record.tier})"
    click.echo(wrap_text(about, dim=True), err=True)
    click.echo(found.text)
