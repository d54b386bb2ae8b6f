"""Figures of reports in words, the same on a terminal and on a page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from speckit_memory.server.console.output import counted

if TYPE_CHECKING:
    from speckit_memory.evaluation.statistics.agreement import Agreement

__all__ = ["counted", "figure", "in_common", "milliseconds", "moment", "percent", "period"]


def percent(part: float, whole: float) -> str:
    """A share of 100; "0 %" of nothing. What is not all is never rounded up to it, nor what is something down to 0."""
    if not whole:
        return "0 %"
    share = 100 * part / whole
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{share:.0f} %"


def milliseconds(value: float, *, signed: bool = False) -> str:
    """A time with as many digits as say something."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:{'+' if signed else ''}.{digits}f} ms"


def figure(value: float | None, digits: int = 3) -> str:
    """A figure without a unit, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def in_common(agreement: Agreement[Any]) -> str:
    """How many of the first ten rows two answers share, or of as many as there are."""
    both, shown = agreement.common(10)
    return f"{both} of the first {shown} in common" if shown > 1 else f"{both} row in common of {shown}"


def period(first: float, last: float, *, hours: bool) -> str:
    """From when to when. `hours`: the moments are only those at which the first and the last hour began."""
    return " to ".join(dict.fromkeys((moment(first), moment(last + 3600 if hours else last))))


def moment(seconds: float) -> str:
    """A moment to the minute, UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
