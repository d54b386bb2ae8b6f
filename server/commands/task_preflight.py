"""`task preflight`: records the state of knowledge before a task."""

from __future__ import annotations

import click

from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text

SCORE = click.IntRange(0, 100)


@click.command("preflight")
@click.argument("folder")
@click.argument("task")
@click.option("--knowledge", type=SCORE, required=True, help="Knowledge, 0 to 100.")
@click.option("--uncertainty", type=SCORE, required=True, help="Uncertainty, 0 to 100.")
@click.option("--context", type=SCORE, required=True, help="Completeness of the context, 0 to 100.")
@click.option("--gap", "gaps", multiple=True, metavar="TEXT", help="A gap in knowledge; may be repeated.")
@click.option("--session", default="", metavar="NAME", help="The session that works on it.")
@shared_options("db", "json")
def command(
    common: Common,
    folder: str,
    task: str,
    knowledge: int,
    uncertainty: int,
    context: int,
    gaps: tuple[str, ...],
    session: str,
) -> None:
    """Record the state of knowledge before a task of a folder.

    Until the task is complete, a repetition replaces the earlier record; it keeps the earlier gaps and session if none
    are given.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        folder: Folder of the task.
        task: Name of the task.
        knowledge: Knowledge, 0 to 100.
        uncertainty: Uncertainty, 0 to 100.
        context: Completeness of the context, 0 to 100.
        gaps: Gaps in knowledge.
        session: Name of the session; "" for none.
    """
    from speckit_memory.server.views.rows.task_rows import task_row

    with existing_store(common) as memory:
        begun = memory.learning.preflight(
            folder, task, knowledge=knowledge, uncertainty=uncertainty, context=context, gaps=gaps, session=session
        )
    if common.as_json:
        print_json({"specFolder": begun.folder, **task_row(begun)})
    else:
        click.echo(wrap_text(f"recorded before the task {begun.task} of {begun.folder}"))
