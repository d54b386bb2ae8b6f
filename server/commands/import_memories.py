"""`import`: imports memories from an export, or documents from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.console.progress import ProgressReporter

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import IndexProgress

OUTCOMES = ("created", "updated", "unchanged", "kept", "refused")
LISTED = 20


@click.command("import")
@click.argument("source", type=NamedPath(), metavar="SOURCE")
@click.option("--merge", is_flag=True, help="Keep memories that are newer here; the default without --replace.")
@click.option(
    "--replace", is_flag=True, help="Take texts and learned data from SOURCE, even where those here are newer."
)
@click.option(
    "--into", metavar="FOLDER", help="The folder for documents that are not an export; else one named like SOURCE."
)
@click.option("--dry-run", is_flag=True, help="Show the outcome for each memory without importing it.")
@shared_options("db", "json")
def command(common: Common, source: Path, merge: bool, replace: bool, into: str | None, dry_run: bool) -> int:
    """Import the memories of SOURCE: an export, a folder of documents, or a single one.

    Missing files are created. The import is all or nothing. Before something is replaced, a checkpoint is made and
    files are copied aside. Exits with 1 when memories were refused.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        source: Export, or folder of documents.
        merge: Whether memories that are newer here are kept.
        replace: Whether texts and learned data are taken from the source even where those here are newer.
        into: Folder for documents that are not an export; None for one named like the source.
        dry_run: Whether only the outcome for each memory is shown.

    Returns:
        1 if a memory was refused, else 0.
    """
    if merge and replace:
        raise click.UsageError("--merge or --replace, not both", click.get_current_context())
    with common.open(create=not dry_run) as memory, ProgressReporter("importing") as bar:

        def note(progress: IndexProgress) -> None:
            bar.update(progress.done, progress.total or 0)

        done = memory.exchange.import_from(source, replace=replace, into=into, dry_run=dry_run, progress=note)
    refused = done.count("refused")
    if common.as_json:
        print_json(
            {
                "dry_run": done.dry_run,
                **{outcome: done.count(outcome) for outcome in OUTCOMES},
                "memories": [{"key": one.key, "outcome": one.outcome, "why": one.why} for one in done.memories],
                "written": list(done.written),
                "checkpoint": done.checkpoint or None,
                "aside": str(done.aside) if done.aside else None,
                "left_out": done.left_out,
                "pending": done.pending,
            }
        )
        return 1 if refused else 0
    for outcome in ("updated", "kept", "refused"):
        told = [one for one in done.memories if one.outcome == outcome]
        for one in told[:LISTED]:
            click.echo(wrap_text(f"{outcome} {one.key}: {one.why}", "  ", ""))
        if len(told) > LISTED:
            click.echo(wrap_text(f"and {len(told) - LISTED} more {outcome}", "  "))
    counts = ", ".join(f"{done.count(outcome)} {outcome}" for outcome in OUTCOMES if done.count(outcome))
    click.echo(wrap_text(f"{counts}{'; nothing was changed (dry run)' if done.dry_run else ''}"))
    if done.written:
        click.echo(wrap_text(f"{plural(len(done.written), 'file')} written to the workspace", dim=True))
    if done.checkpoint:
        click.echo(wrap_text(f"the store before the import is kept as {done.checkpoint}", dim=True))
    if done.aside:
        click.echo(wrap_text(f"overwritten files were copied to {done.aside}", dim=True))
    if done.left_out:
        click.echo(wrap_text(f"{plural(done.left_out, 'link')} to missing memories left out", dim=True))
    if done.pending:
        click.echo(wrap_text(f"{plural(done.pending, 'passage')} without vectors: {WHO_EMBEDS}", dim=True))
    return 1 if refused else 0
