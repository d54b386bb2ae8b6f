"""Numbers of changes, judgements and links as the tables of the command line show them: 3, or #3."""

from __future__ import annotations

from typing import Any

import click

LARGEST = 2**63 - 1


class ShownNumber(click.IntRange):
    """A whole number from 1 on, which may have the sign before it that tables show."""

    def __init__(self) -> None:
        super().__init__(min=1, max=LARGEST)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails as click's own type does."""
        if isinstance(value, str):
            value = value.removeprefix("#")
        return super().convert(value, param, ctx)
