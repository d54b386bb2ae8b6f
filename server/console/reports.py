"""Prints reports of the evaluation, fitted to the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import click

from speckit_memory.server.console import terminal
from speckit_memory.server.console.output import table, wrap_text

if TYPE_CHECKING:
    from speckit_memory.evaluation.statistics.tables import Block


class Report(Protocol):
    """The interface of all reports of the evaluation."""

    def blocks(self) -> Sequence[Block]:
        """The sentences and tables."""

    def as_text(self) -> str:
        """The whole report, without wrapping."""


def show_report(report: Report) -> None:
    """Prints a report, wrapped to the terminal if there is one."""
    room = terminal.columns()
    if room is None:
        click.echo(report.as_text())
        return
    click.echo("\n\n".join(_fitted(block, room) for block in report.blocks() if str(block)))


def _fitted(block: Block, room: int) -> str:
    from speckit_memory.server.console.wrapping import cells

    lines = str(block).split("\n")
    if isinstance(block, str):
        return "\n".join(wrap_text(line, "  ", "") for line in lines)
    # the report's own layout is best if it fits
    if max(map(cells, lines)) <= room:
        return str(block)
    return table(block.rows, right=range(1, len(block.rows[0])), headed=True)
