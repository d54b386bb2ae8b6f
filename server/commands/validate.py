"""`validate`: records whether a memory was useful (feature T10)."""

from __future__ import annotations

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.memory_names import of_known
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.views.validation_text import TAKEN_BACK, validated_data


@click.command("validate")
@click.argument("name", metavar="ID|KEY")
@click.option("--useful/--not-useful", default=None, help="Whether the memory was useful; one of them is required.")
@click.option("--promote", is_flag=True, help="Make the memory critical, once readers trust it.")
@click.option("--session", default="", metavar="NAME", help="Name of the judging session.")
@shared_options("db", "json")
def command(common: Common, name: str, useful: bool | None, promote: bool, session: str) -> None:
    """Record whether a memory that you read was useful, which changes its confidence.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        name: Id or key of the memory.
        useful: Whether the memory was useful.
        promote: Whether to make the memory critical, once readers trust it.
        session: Name of the session; "" for none.
    """
    if useful is None:
        raise click.UsageError("one of --useful and --not-useful is needed", click.get_current_context())
    from speckit_memory.server.views.unweighed_inputs import unweighed_judgement

    with existing_store(common) as memory:
        judged = of_known(
            memory, name, lambda one: memory.learning.validate(one, useful=useful, promote=promote, session=session)
        )
        hints = unweighed_judgement(memory)
    if common.as_json:
        print_json(validated_data(judged, session))
        return
    times = plural(judged.validation_count, "validation")
    click.echo(wrap_text(f"{judged.key}: confidence {judged.confidence:g} after {times}, tier {judged.tier}"))
    if judged.restored:
        click.echo(wrap_text(TAKEN_BACK))
    if judged.eligible:
        click.echo(wrap_text("it may become critical: the next `validate` may use --promote"))
    for hint in hints:
        click.echo(wrap_text(hint, dim=True))
