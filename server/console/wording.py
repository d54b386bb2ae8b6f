"""Formats figures of reports, for terminals and pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from speckit_memory.errors.echo import plural
from speckit_memory.evaluation.statistics.report import figure

if TYPE_CHECKING:
    from speckit_memory.evaluation.statistics.agreement import Agreement

__all__ = ["figure", "in_common", "milliseconds", "moment", "percent", "period", "plural"]


def percent(part: float, whole: float) -> str:
    """A percentage; "0 %" of zero. A partial share is never rounded to 0 or 100 %."""
    if not whole:
        return "0 %"
    share = 100 * part / whole
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{share:.0f} %"


def milliseconds(value: float, *, signed: bool = False) -> str:
    """A time with about three significant digits."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:{'+' if signed else ''}.{digits}f} ms"


def in_common(agreement: Agreement[Any]) -> str:
    """Says how many of the first ten rows, or of fewer if there are fewer, two answers share."""
    both, shown = agreement.common(10)
    return f"{both} of the first {shown} in common" if shown > 1 else f"{both} row in common of {shown}"


def period(first: float, last: float, *, hours: bool) -> str:
    """Formats a period. With `hours`, the times are the starts of the first and the last hour."""
    # a period within one minute is shown as a single time
    return " to ".join(dict.fromkeys((moment(first), moment(last + 3600 if hours else last))))


def moment(seconds: float) -> str:
    """A time to the minute, UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
