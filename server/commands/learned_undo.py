"""`learned undo`: reverts judgements and promotions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.memory_names import known_key
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.arguments.shown_number import PrefixedInt
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table_rows, wrap_text
from speckit_memory.server.views.judgements_text import cells, row

if TYPE_CHECKING:
    from speckit_memory.memory.lifecycle.validations import ValidationResult


@click.command("undo")
@click.argument("numbers", nargs=-1, type=PrefixedInt(), metavar="[JUDGEMENT]...")
@click.option("--memory", "name", metavar="ID|KEY", help="All judgements of this memory.")
@click.option("--session", default="", metavar="NAME", help="All judgements by this session.")
@shared_options("db", "json")
def command(common: Common, numbers: tuple[int, ...], name: str | None, session: str) -> None:
    """Undo judgements and promotions by number, or all of a memory or a session.

    The numbers are those of `learned judgements`; all of them are undone or none. Memories are then as if the
    judgements had never been given: later ones count as they would have, and a promotion with too little support left
    is undone too.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        numbers: Numbers of judgements.
        name: Memory whose judgements are all taken back; None for no memory.
        session: Session whose judgements are all taken back; "" for no session.
    """
    if bool(numbers) is bool(name or session):
        raise click.UsageError("give judgements by their numbers, or with --memory or --session")
    with existing_store(common) as memory:
        key = known_key(memory, name) if name else None
        found = memory.learning.undo_judgements(numbers, name=key, session=session)
        kept = bool(found.undone or memory.learning.judgements(key, session=session, limit=1))
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
            wrap_text(
                f"{one.key}: {one.tier}, confidence {one.confidence:g}, {plural(one.validation_count, 'validation')}"
            )
        )
    without = f"; {plural(len(found.followed), 'promotion')} undone for lack of support" if found.followed else ""
    why = "" if found.undone else f": {_nothing(key, session, kept)}"
    click.echo(wrap_text(f"{plural(len(found.undone), 'judgement')} undone{why}{without}"))


def _nothing(key: str | None, session: str, kept: bool) -> str:
    """Why there was nothing to undo; `kept` if there are judgements on record."""
    of, by = f" of {key}" if key else "", f" by session '{session}'" if session else ""
    what = f"judgement{of}{by}"
    return f"every {what} was undone before" if kept else f"no {what} is on record"


def _stands(one: ValidationResult) -> dict[str, object]:
    return {
        "id": one.id,
        "key": one.key,
        "tier": str(one.tier),
        "confidence": one.confidence,
        "validations": one.validation_count,
        "kept_days": round(one.kept_days, 1),
    }
