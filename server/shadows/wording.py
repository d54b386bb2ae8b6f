"""Figures and times of reports as text, and the start of a period as people type it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from speckit_memory.evaluation.statistics.agreement import Agreement


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


_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since(text: str, now: float) -> float:
    """Parses a time and returns epoch seconds; ages such as "7d" are relative to `now`.

    Dates and times without a zone are local. Raises E030 for anything else, and for the future.
    """
    if ago := _AGO.fullmatch(text.strip().lower()):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        # astimezone() interprets naive times as local ones
        moment = datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise SpeckitError(
            "E030",
            f"--since is '{text}', which is not a time",
            hint="Accepted are an age (90s, 90m, 24h, 7d, 2w) and a date or time in ISO 8601.",
            actions=("write --since 7d", "write --since 2026-01-31, or 2026-01-31T09:00"),
        ) from None
    if moment > now:
        raise SpeckitError("E030", f"--since is '{text}', which is in the future", actions=("write --since 7d",))
    return moment


def iso(moment: float) -> str:
    """The time in ISO 8601, UTC."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
