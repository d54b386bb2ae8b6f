"""Reports of the evaluation on a terminal: their sentences and tables, made to fit it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import click

from speckit_memory.server.console import terminal
from speckit_memory.server.console.output import table, wrapped

if TYPE_CHECKING:
    from speckit_memory.evaluation.statistics.tables import Block


class Report(Protocol):
    """What every report of the evaluation offers."""

    def blocks(self) -> Sequence[Block]:
        """Its sentences and tables."""

    def as_text(self) -> str:
        """The whole of it, as wide as it is."""


def show_report(report: Report) -> None:
    """Writes a report: as it is where it fits or where there is no terminal, else wrapped to the terminal."""
    room = terminal.columns()
    if room is None:
        click.echo(report.as_text())
        return
    click.echo("\n\n".join(_fitted(block, room) for block in report.blocks() if str(block)))


def _fitted(block: Block, room: int) -> str:
    from speckit_memory.server.console.folding import cells

    lines = str(block).split("\n")
    if isinstance(block, str):
        return "\n".join(wrapped(line, "  ", "") for line in lines)
    if max(map(cells, lines)) <= room:
        return str(block)
    return table(block.rows, right=range(1, len(block.rows[0])), headed=True)
