"""`task postflight`: records the state of knowledge after a task, and the learning."""

from __future__ import annotations

import click

from speckit_memory.server.commands.task_preflight import SCORE
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("postflight")
@click.argument("folder")
@click.argument("task")
@click.option("--knowledge", type=SCORE, required=True, help="Knowledge after the task, 0 to 100.")
@click.option("--uncertainty", type=SCORE, required=True, help="Uncertainty after the task, 0 to 100.")
@click.option("--context", type=SCORE, required=True, help="Completeness of the context after the task, 0 to 100.")
@click.option("--closed", multiple=True, metavar="TEXT", help="A gap that is closed; may be repeated.")
@click.option("--new-gap", "new_gaps", multiple=True, metavar="TEXT", help="A new gap; may be repeated.")
@shared_options("db", "json")
def command(
    common: Common,
    folder: str,
    task: str,
    knowledge: int,
    uncertainty: int,
    context: int,
    closed: tuple[str, ...],
    new_gaps: tuple[str, ...],
) -> None:
    """Complete the record of a task and show its learning index.

    The index is 0.4 of the knowledge gained, 0.35 of the uncertainty lost and 0.25 of the context gained.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        folder: Folder of the task.
        task: Name of the task.
        knowledge: Knowledge after the task, 0 to 100.
        uncertainty: Uncertainty after the task, 0 to 100.
        context: Completeness of the context after the task, 0 to 100.
        closed: Gaps that are closed.
        new_gaps: New gaps.
    """
    from speckit_memory.server.views.rows.task_rows import changes, task_row

    with existing_store(common) as memory:
        done = memory.learning.postflight(
            folder,
            task,
            knowledge=knowledge,
            uncertainty=uncertainty,
            context=context,
            gaps_closed=closed,
            new_gaps=new_gaps,
        )
    row = task_row(done)
    if common.as_json:
        print_json({"specFolder": done.folder, **row})
    else:
        click.echo(wrap_text(f"learning index {row['learning_index']:g} ({row['band']}): {fields(changes(row))}"))
