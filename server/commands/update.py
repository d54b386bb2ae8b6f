"""`update`: changes the metadata that the document of a memory declares."""

from __future__ import annotations

import click

from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.typed_text import decode_option
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text


@click.command("update")
@click.argument("name", metavar="ID|KEY")
@click.option("--title", metavar="TEXT", callback=decode_option, help="The new title.")
@click.option(
    "--trigger",
    "triggers",
    multiple=True,
    metavar="PHRASE",
    callback=decode_option,
    help="A trigger phrase; may be repeated.",
)
@click.option("--no-triggers", is_flag=True, help="Remove all trigger phrases.")
@click.option("--tier", metavar="TIER", help="constitutional, critical, important, normal, temporary or deprecated.")
@click.option("--weight", type=float, metavar="0..1", help="The importance weight.")
@click.option("--partial", is_flag=True, help="Keep the change even if the model cannot embed the memory again.")
@shared_options("db", "json")
def command(
    common: Common,
    name: str,
    title: str | None,
    triggers: tuple[str, ...],
    no_triggers: bool,
    tier: str | None,
    weight: float | None,
    partial: bool,
) -> None:
    """Change title, trigger phrases, tier or weight of a memory in its file.

    The front matter is edited and indexed again. Given phrases replace all declared ones.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory.
        title: New title; None to keep it.
        triggers: New trigger phrases; none to keep them.
        no_triggers: Whether all trigger phrases are removed.
        tier: New tier; None to keep it.
        weight: New importance weight, 0 to 1; None to keep it.
        partial: Whether the change is kept even if the memory cannot be embedded again.
    """
    if triggers and no_triggers:
        raise click.UsageError("--trigger and --no-triggers exclude each other", click.get_current_context())
    from speckit_memory.server.views.rows.rows import update_facts
    from speckit_memory.server.views.unweighed_inputs import unweighed_hint

    with existing_store(common) as memory:
        updated = memory.documents.update(
            known_key(memory, name),
            title=title,
            triggers=() if no_triggers else triggers or None,
            tier=tier,
            weight=weight,
            allow_partial=partial,
        )
        before, after = update_facts(updated.before), update_facts(updated.after)
        changed = {name: value for name, value in after.items() if value != before[name]}
        hints = unweighed_hint(memory, changed, {before["importanceTier"], after["importanceTier"]})
    if common.as_json:
        was = {name: before[name] for name in changed}
        print_json({"key": updated.after.key, "changed": changed, "was": was, "embedding_pending": updated.pending})
        return
    for fact, value in changed.items():
        click.echo(wrap_text(f"{updated.after.key}: {fact} {value!r}, was {before[fact]!r}"))
    if not changed:
        click.echo(wrap_text(f"{updated.after.key}: nothing changed"))
    for hint in hints:
        click.echo(wrap_text(hint, dim=True))
