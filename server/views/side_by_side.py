"""Compares the results of a search with those of other pipelines: both lists, the moves, and the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from speckit_memory.evaluation.statistics.agreement import Agreement, agree
from speckit_memory.server.console import terminal
from speckit_memory.server.console.output import printable, table, wrap_text
from speckit_memory.server.shadows.wording import in_common

if TYPE_CHECKING:
    from speckit_memory.engine.answers.results import ResultRow, SearchResult, ShadowAnswer

WIDE_ENOUGH = 80
"""Minimum width in cells at which two lists are printed side by side."""


def compare_rows(result: SearchResult, shadow: ShadowAnswer) -> Agreement[int]:
    """The agreement of another pipeline's rows with the served ones."""
    rows = shadow.result.results if shadow.result else ()
    return agree([(row.id, row.score) for row in result.results], [(row.id, row.score) for row in rows])


def shadows_json(result: SearchResult) -> list[dict[str, Any]]:
    """The entry `shadows` of `search --json`: the rows of each pipeline and their agreement with the served ones."""
    return [{**shadow.as_json(), "agreement": _agreement(result, shadow)} for shadow in result.beside]


def _agreement(result: SearchResult, shadow: ShadowAnswer) -> dict[str, Any] | None:
    if shadow.result is None:
        return None
    found = compare_rows(result, shadow)
    return {
        "kendall_tau_b": found.kendall_tau_b,
        "overlap_5": found.overlap_5,
        "overlap_10": found.overlap_10,
        "rbo": found.rbo,
        "first_difference": found.first_difference,
        "ordering_difference": found.ordering_difference,
        "compared": found.common()[1],
        "moves": [{"id": move.id, "before": move.before, "after": move.after} for move in found.moves],
    }


def show_beside(result: SearchResult) -> None:
    """Prints both lists and their differences for each pipeline."""
    for shadow in result.beside:
        click.echo("\n" + wrap_text(f"Compared with: {shadow.name}", bold=True))
        if shadow.result is None:
            click.echo(wrap_text(f"It failed: {shadow.failure}.", "  ", fg="yellow"))
            continue
        if shadow.failure:
            click.echo(wrap_text(f"It answered, but a step failed: {shadow.failure}.", "  ", fg="yellow"))
        _lists(result, shadow.result, shadow.name)
        for sentence in _sentences(result, shadow):
            click.echo(wrap_text(sentence, "  ", dim=True))


def _lists(result: SearchResult, other: SearchResult, name: str) -> None:
    served, beside = result.results, other.results
    before = {row.id: rank for rank, row in enumerate(served, start=1)}
    after = {row.id: rank for rank, row in enumerate(beside, start=1)}
    left = [_row(rank, row, "" if row.id in after else "–") for rank, row in enumerate(served, start=1)]
    right = [_row(rank, row, _moved(rank, before.get(row.id))) for rank, row in enumerate(beside, start=1)]
    room = terminal.columns()
    # narrow terminal: one list below the other
    if room is not None and room < WIDE_ENOUGH:
        for heading, rows in ((result.pipeline.name, left), (name, right)):
            click.echo(wrap_text(heading, "  ", underline=True))
            click.echo(table(rows, right=(0,), indent="  ") if rows else "  nothing")
        return
    nothing = ("", "", "")
    both = [(*one, *other) for one, other in zip_longest(left, right, fillvalue=nothing)]
    names = ("", result.pipeline.name, "", "", name, "")
    click.echo(table([names, *both], right=(0, 3), indent="  ", headed=True))


def _row(rank: int, row: ResultRow, mark: str) -> tuple[str, str, str]:
    return f"{rank}.", printable(row.key), mark


def _moved(rank: int, before: int | None) -> str:
    if before is None:
        return click.style("new", fg="green")
    shift = before - rank
    return click.style(f"↑{shift}", fg="green") if shift > 0 else click.style(f"↓{-shift}", fg="red") if shift else ""


def _sentences(result: SearchResult, shadow: ShadowAnswer) -> Sequence[str]:
    found = compare_rows(result, shadow)
    if found.ordering_difference:
        tau = "" if found.kendall_tau_b is None else f", Kendall's tau-b {found.kendall_tau_b:.2f}"
        said = f"They differ from rank {found.first_difference} on{tau}; {in_common(found)}."
    else:
        said = "The same rows in the same order" + (", with other scores." if found.only_scores_differ else ".")
    parted = f"They differ from the step '{shadow.parted_at}' on." if shadow.parted_at else "No step differs."
    figures = (
        f"{shadow.total_ms:.1f} ms alone, {shadow.spent_ms:.1f} ms in addition · pipeline {shadow.pipeline.name} "
        f"{shadow.pipeline.hash}"
    )
    return said, parted, figures
