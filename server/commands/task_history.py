"""`task history`: lists past tasks of a folder and what they taught."""

from __future__ import annotations

from typing import Any

import click

from speckit_memory.memory.lifecycle.tasks import MOST_LISTED
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.markdown import fields
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table, wrap_text


@click.command("history")
@click.argument("folder")
@click.option("--session", default="", metavar="NAME", help="Only tasks of this session.")
@click.option(
    "--limit", type=click.IntRange(1, MOST_LISTED), default=10, show_default=True, help="Maximum number of tasks."
)
@click.option("--complete", is_flag=True, help="Only tasks that are complete.")
@shared_options("db", "json")
def command(common: Common, folder: str, session: str, limit: int, complete: bool) -> None:
    """List tasks of a folder, the latest first, with means and trend over all of them.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        folder: Folder of the tasks.
        session: Name of the session; "" for none.
        limit: Maximum number of tasks.
        complete: Whether only complete tasks are shown.
    """
    from speckit_memory.server.views.rows.task_rows import changes, summary_row, task_row

    with existing_store(common) as memory:
        found = memory.learning.history(folder, session=session, limit=limit, only_complete=complete)
    rows, summary = [task_row(task) for task in found.tasks], summary_row(found.summary)
    if common.as_json:
        print_json({"specFolder": folder, "summary": summary, "tasks": rows})
        return
    shown: list[tuple[str, ...]] = [("task", "index", "band", "changes", "completed")]
    shown += [_line(row, changes(row) if "delta" in row else {}) for row in rows]
    if rows:
        click.echo(table(shown, right=[1], headed=True))
    click.echo(wrap_text(fields(summary), dim=True))


def _line(row: dict[str, Any], changed: dict[str, str]) -> tuple[str, ...]:
    if not changed:
        return row["taskId"], "", "not complete", "", ""
    return row["taskId"], f"{row['learning_index']:g}", row["band"], fields(changed), row["completed"][:10]
