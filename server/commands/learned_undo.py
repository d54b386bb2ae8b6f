"""`learned undo`: takes judgements and promotions back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from speckit_memory.server.commands.search import existing_store
from speckit_memory.server.judgements_text import cells, row
from speckit_memory.server.memory_names import known_key
from speckit_memory.server.options import Common, shared
from speckit_memory.server.output import counted, print_json, table_rows, wrapped

if TYPE_CHECKING:
    from speckit_memory.memory.lifecycle.validations import Validated


@click.command("undo")
@click.argument("numbers", nargs=-1, type=click.IntRange(min=1, max=2**63 - 1), metavar="[JUDGEMENT]...")
@click.option("--memory", "name", metavar="ID|KEY", help="All that was judged of this memory.")
@click.option("--session", default="", metavar="NAME", help="All that this session judged.")
@shared("db", "json")
def command(common: Common, numbers: tuple[int, ...], name: str | None, session: str) -> None:
    """Take judgements and promotions back: by the numbers that `learned judgements` shows, all or none, or all of a
    memory or a session.

    Memories are then as if nobody had given them: what came later counts as it would have, and a promotion for which
    too little is left goes too.
    """
    if bool(numbers) is bool(name or session):
        raise click.UsageError("say which judgements, by their numbers or with --memory or --session")
    with existing_store(common) as memory:
        found = memory.undo_judgements(numbers, name=known_key(memory, name) if name else None, session=session)
    if common.as_json:
        print_json(
            {
                "undone": [row(one) for one in found.undone],
                "followed": [row(one) for one in found.followed],
                "memories": [_stands(one) for one in found.memories],
            }
        )
        return
    for line in table_rows([cells(one) for one in (*found.undone, *found.followed)]):
        click.echo(line)
    for one in found.memories:
        click.echo(
            wrapped(
                f"{one.key}: {one.tier}, confidence {one.confidence:g}, {counted(one.validation_count, 'validation')}"
            )
        )
    without = f"; {counted(len(found.followed), 'promotion')} with too little left for it" if found.followed else ""
    click.echo(wrapped(f"{counted(len(found.undone), 'judgement')} taken back{without}"))


def _stands(one: Validated) -> dict[str, object]:
    return {
        "id": one.id,
        "key": one.key,
        "tier": str(one.tier),
        "confidence": one.confidence,
        "validations": one.validation_count,
        "kept_days": round(one.kept_days, 1),
    }
