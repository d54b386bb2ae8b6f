"""Reports as a terminal shows them, without colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from speckit_memory.server.reports.terminal import report_lines


def plain(lines: Sequence[str]) -> list[str]:
    """The lines without styles."""
    return click.unstyle("\n".join(lines)).split("\n")


def said(result: Any, *, full: bool = False) -> str:
    """The text of a result's report, not wrapped."""
    return "\n".join(plain(report_lines(result.as_report(), full=full)))
