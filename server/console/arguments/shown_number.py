"""Parses numbers of changes, judgements and links as tables show them: 3 or #3."""

from __future__ import annotations

from typing import Any

import click

LARGEST = 2**63 - 1


class PrefixedInt(click.IntRange):
    """A positive whole number, optionally with a leading "#"."""

    def __init__(self) -> None:
        super().__init__(min=1, max=LARGEST)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Converts to the number; fails like click's own type."""
        if isinstance(value, str):
            # shells treat an unquoted # at the start of a word as a comment, so both forms must work
            value = value.removeprefix("#")
        return super().convert(value, param, ctx)
