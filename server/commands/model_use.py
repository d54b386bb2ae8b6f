"""`model use`: changes the embedding model of a store, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.console.progress import ProgressReporter

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.tuning.spaces import SpaceComparison
    from speckit_memory.memory.indexing import IndexProgress


@click.command("use")
@click.argument("name", required=False)
@click.option("--rollback", is_flag=True, help="Go back to the model that was in use before the last change.")
@click.option("--compare-only", is_flag=True, help="Build the vectors and compare them; keep those in use.")
@click.option("--no-compare", is_flag=True, help="Change without a comparison.")
@shared_options("db", "json")
def command(common: Common, name: str | None, rollback: bool, compare_only: bool, no_compare: bool) -> int:
    """Build the vectors of the embedding model NAME and use them unless they are worse.

    The vectors are compared by the answers to queries made of your memories and, by vectors alone, to the judged
    questions that ship. Searches use the old vectors until the change, which is one step for all processes. The next
    run continues an interrupted one. --rollback restores the previous model and computes nothing.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Name of the model.
        rollback: Whether the model in use before the last change is used again.
        compare_only: Whether vectors are built and compared but not used.
        no_compare: Whether the model changes without a comparison.

    Returns:
        1 if the model was refused, else 0.
    """
    if rollback == bool(name):
        raise click.UsageError("give either a NAME or --rollback", click.get_current_context())
    if rollback and (compare_only or no_compare):
        raise click.UsageError("--rollback takes no other option", click.get_current_context())
    if compare_only and no_compare:
        raise click.UsageError("--compare-only and --no-compare exclude each other", click.get_current_context())
    with existing_store(common) as memory:
        found: dict[str, Any] = _back(memory) if name is None else _to(memory, name, compare_only, no_compare, common)
    if common.as_json:
        print_json(found)
        return int("refused" in found)
    if "built" in found:
        built = found["built"]
        told = f"{built['embedded']:,} embedded, {built['cached']:,} taken from the cache"
        click.echo(wrap_text(f"{plural(built['total'], 'passage')}: {told}"))
    if "refused" in found:
        click.echo(wrap_text(found["refused"]))
        return 1
    if "changed" not in found:
        click.echo(wrap_text(f"nothing was changed; `speckit-memory model use {name}` changes the model"))
        return 0
    changed = found["changed"]
    waiting = f", {changed['pending']:,} memories wait for their vectors" if changed["pending"] else ""
    if changed["before"] in ("", changed["after"]):
        click.echo(wrap_text(f"{changed['after']} is in use{waiting}"))
    else:
        click.echo(wrap_text(f"{changed['after']} is in use, {changed['before']} was before{waiting}"))
        click.echo(wrap_text("`speckit-memory model use --rollback` goes back"))
    return 0


def _to(memory: Memory, name: str, compare_only: bool, no_compare: bool, common: Common) -> dict[str, Any]:
    with ProgressReporter("embedding") as bar:

        def note(now: IndexProgress) -> None:
            bar.update(now.done, now.total or 0)

        built = memory.models.build(name, progress=note)
    found: dict[str, Any] = {"built": {"embedded": built.embedded, "cached": built.cached, "total": built.total}}
    worse = False
    if not no_compare and memory.models.list().serving not in ("", built.stamp.model_id):
        compared = _compared(memory, name)
        found["compared"], worse = compared.as_json(), compared.worse
        if not common.as_json:
            click.echo(compared.as_text())
    if worse and not compare_only:
        found["refused"] = (
            f"nothing was changed, because the vectors of {name} are worse than those in use; "
            f"`speckit-memory model use {name} --no-compare` changes the model anyway"
        )
    elif not compare_only:
        found["changed"] = _plain(memory.models.use(name))
    return found


def _compared(memory: Memory, name: str) -> SpaceComparison:
    from speckit_memory.evaluation.tuning.spaces import compare_spaces

    with ProgressReporter("comparing") as bar:
        return compare_spaces(memory, name, bar.update)


def _back(memory: Memory) -> dict[str, Any]:
    with ProgressReporter("embedding") as bar:

        def note(now: IndexProgress) -> None:
            bar.update(now.done, now.total or 0)

        return {"changed": _plain(memory.models.roll_back(progress=note))}


def _plain(changed: Any) -> dict[str, Any]:
    return {"before": changed.before, "after": changed.after, "pending": changed.pending}
