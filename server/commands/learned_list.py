"""`learned list`: lists the trigger phrases learned from selections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.missing_store import existing_store
from speckit_memory.server.console.output import print_json, table, wrap_text

if TYPE_CHECKING:
    from speckit_memory.engine.api.triggers import LearnedPhrases
    from speckit_memory.memory.store.tables.sessions.selections import LearnedPhrase

DAY = 86_400.0


@click.command("list")
@shared_options("db", "json")
def command(common: Common) -> None:
    """List learned trigger phrases with their memory, selection, start and expiry.

    Searches use them while the flag SPECKIT_LEARN_FROM_SELECTION is on; `maintain` and running servers learn them.
    """
    from speckit_memory.server.views.rows.rows import when

    with existing_store(common) as memory:
        found = memory.triggers.learned()
    if common.as_json:
        phrases = [row(one) for one in found.phrases]
        print_json(
            {
                "phrases": phrases,
                "learns": found.learns,
                "pairs": found.pairs,
                "pairs_wanting": found.pairs_wanting,
                "days_wanting": round(found.seconds_wanting / DAY, 2),
                "texts": found.texts,
            }
        )
        return
    if found.phrases:
        heads = ("memory", "phrase", "learned", "until", "from")
        rows = [
            (one.key, one.phrase, when(one.learned_at)[:10], when(one.expires_at)[:10], _describe(one))
            for one in found.phrases
        ]
        click.echo(table([heads, *rows], headed=True))
    click.echo(wrap_text(f"{plural(len(found.phrases), 'phrase')} learned; {standing(found)}", dim=True))


def standing(found: LearnedPhrases) -> str:
    """The state of learning in words."""
    if not found.texts:
        return "nothing is learned: questions are not kept (evaluation: {keep_texts: never} in .speckit/config.yaml)"
    if found.learns:
        return f"learning, after {plural(found.pairs, 'selection')}"
    return (
        f"watching: {found.pairs_wanting} more selections and {found.seconds_wanting / DAY:.1f} more days are needed "
        "before anything is learned"
    )


def _describe(one: LearnedPhrase) -> str:
    return "; ".join(f"{by.use} at rank {by.rank}, query {by.query}" for by in one.taught_by)


def row(one: LearnedPhrase) -> dict[str, object]:
    """A phrase as plain data."""
    from speckit_memory.server.views.rows.rows import when

    return {
        "memory": one.memory,
        "key": one.key,
        "phrase": one.phrase,
        "learned_at": when(one.learned_at),
        "expires_at": when(one.expires_at),
        "taught_by": [
            {"query": by.query, "use": by.use, "rank": by.rank, "at": when(by.selected_at)} for by in one.taught_by
        ],
    }
