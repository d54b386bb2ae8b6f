"""Results as a terminal without a width shows them."""

from __future__ import annotations

from typing import Any

import click

from speckit_memory.server.reports.terminal import report_lines


def said(result: Any, *, full: bool = False) -> str:
    """The text of a result's report."""
    return click.unstyle("\n".join(report_lines(result.as_report(), full=full)))
